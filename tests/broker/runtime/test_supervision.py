"""Tasks that must not end go on after any error; each error is logged once and counted."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from broker.runtime.supervision import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, ONE_TIME, Supervision

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from broker.runtime.timers import Timers


class TimeByHand:
    """Clock and timers in one: time passes during a sleep, and takes none."""

    def __init__(self) -> None:
        self.time_ms = 0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms

    async def sleep(self, delay_ms: float) -> None:
        self.slept.append(delay_ms)
        self.time_ms += int(delay_ms)
        await asyncio.sleep(0)  # noqa: TID251


class Failing:
    """Work that raises so many times, then returns or waits for ever."""

    def __init__(self, time: TimeByHand, *errors: BaseException, ends: bool = True) -> None:
        self._time = time
        self._errors = list(errors)
        self._ends = ends
        self.begun = 0
        self.lasts_ms = 0

    async def run(self) -> str:
        self.begun += 1
        self._time.time_ms += self.lasts_ms
        if self._errors:
            raise self._errors.pop(0)
        if not self._ends:
            await asyncio.Event().wait()
        return "done"


def supervised(scenario: Callable[[Supervision, TimeByHand], Awaitable[None]]) -> None:
    async def run() -> None:
        time = TimeByHand()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            supervision = Supervision(group, cast("Timers", time), time)
            try:
                await scenario(supervision, time)
            finally:
                supervision.close()

    asyncio.run(run())


def odd(number: int = 0) -> ValueError:
    return ValueError(f"odd {number}")


def test_work_that_fails_is_begun_again_after_pauses_that_grow_up_to_a_bound() -> None:
    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        work = Failing(time, *map(odd, range(10)))
        assert await supervision.persist("work", work.run) == "done"
        assert work.begun == 11
        doubled = [min(FIRST_PAUSE_MS * 2**n, LONGEST_PAUSE_MS) for n in range(10)]
        assert time.slept == doubled
        assert supervision.failures == {"work": 10}

    supervised(scenario)


def test_work_that_went_well_for_long_gets_a_short_pause_again() -> None:
    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        work = Failing(time, odd(), odd(), odd())
        work.lasts_ms = LONGEST_PAUSE_MS + 1
        await supervision.persist("work", work.run)
        assert time.slept == [FIRST_PAUSE_MS] * 3

    supervised(scenario)


def test_an_error_is_logged_once_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def fail_elsewhere() -> NoReturn:
        raise odd()

    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        await supervision.persist("work", Failing(time, *map(odd, range(5))).run)
        await supervision.persist("work", Failing(time, KeyError("odd")).run)
        await supervision.persist("other work", Failing(time, odd()).run)
        with pytest.raises(ValueError, match="odd") as raised:
            fail_elsewhere()
        supervision.note("work", raised.value)
        assert supervision.failures == {"work": 7, "other work": 1}

    supervised(scenario)
    lines = [(one.getMessage(), one.exc_info[0]) for one in caplog.records if one.exc_info]
    assert lines == [
        ("work failed", ValueError),
        ("work failed", KeyError),
        ("other work failed", ValueError),
        ("work failed", ValueError),
    ]


def test_cancelling_ends_work_and_a_cancellation_that_it_met_does_not() -> None:
    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        work = Failing(time, asyncio.CancelledError(), ends=False)
        task = supervision.keep("work", work.run)
        while work.begun < 2:
            await asyncio.sleep(0)  # noqa: TID251
        assert supervision.failures == {"work": 1}
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    supervised(scenario)


def test_one_time_work_that_fails_is_noted_and_ends_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        assert await supervision.spawn(Failing(time, odd()).run(), "create topic a") is None
        assert await supervision.spawn(Failing(time).run(), "create topic b") == "done"
        assert supervision.failures == {ONE_TIME: 1}

    supervised(scenario)
    assert [one.getMessage() for one in caplog.records] == ["create topic a failed"]
    assert caplog.records[0].levelno == logging.ERROR


def test_one_time_work_that_met_a_cancellation_is_noted_and_one_that_is_cancelled_is_not() -> None:
    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        met = supervision.spawn(Failing(time, asyncio.CancelledError()).run(), "create topic a")
        assert await met is None
        assert supervision.failures == {ONE_TIME: 1}

        work = Failing(time, ends=False)
        task = supervision.spawn(work.run(), "create topic b")
        while not work.begun:
            await asyncio.sleep(0)  # noqa: TID251
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert supervision.failures == {ONE_TIME: 1}

    supervised(scenario)


def test_work_spawned_after_the_task_group_ended_never_begins() -> None:
    """A timer of an embedded broker does so, as the loop goes on after it."""

    async def scenario() -> None:
        time = TimeByHand()
        async with asyncio.TaskGroup() as group:
            supervision = Supervision(group, cast("Timers", time), time)
        supervision.close()
        work = Failing(time)
        task = supervision.spawn(work.run(), "late")
        await asyncio.wait([task])
        assert task.cancelled()
        assert work.begun == 0

    asyncio.run(scenario())


def test_what_is_spawned_after_the_end_is_cancelled() -> None:
    async def scenario(supervision: Supervision, time: TimeByHand) -> None:
        supervision.close()
        never: Coroutine[Any, Any, str] = Failing(time).run()
        task = supervision.spawn(never, "late")
        await asyncio.wait([task])
        assert task.cancelled()

    supervised(scenario)
