"""Long work gives way within its budget, and shares the event loop with other long work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.runtime.slices import BUDGET_MS, Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator
    from typing import Any


class Stopwatch:
    """Goes on when work is done, and only then."""

    def __init__(self) -> None:
        self.ms = 0.0

    def __call__(self) -> float:
        return self.ms / 1000


class Days:
    """Notes, for each turn of the loop, how long work had it and whose steps were done."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()
        self.turns = Turns(self.stopwatch)
        self.ms: list[float] = []
        self.steps: list[str] = []
        self._is_over = False

    def step(self, name: str, ms: float) -> None:
        self.stopwatch.ms += ms
        self.steps[-1] += name

    def _next_turn(self) -> None:
        if self.ms:
            self.ms[-1] = self.stopwatch.ms - self.ms[-1]
        if not self._is_over:
            self.ms.append(self.stopwatch.ms)
            self.steps.append("")
            asyncio.get_running_loop().call_soon(self._next_turn)

    async def watch(self, *works: Coroutine[Any, Any, None]) -> None:
        """Run works side by side."""
        self._next_turn()
        await asyncio.gather(*works)
        self._is_over = True
        await asyncio.sleep(0)  # noqa: TID251

    @property
    def worked(self) -> list[str]:
        """The steps of the turns in which there were any."""
        return [steps for steps in self.steps if steps]


async def count(days: Days, name: str, steps: int, ms: float) -> None:
    async for _ in days.turns.slices().each(range(steps)):
        days.step(name, ms)


def test_work_gives_way_before_a_step_would_exceed_the_budget() -> None:
    async def scenario() -> None:
        days = Days()
        await days.watch(count(days, "a", 10, ms=0.3 * BUDGET_MS))
        assert days.worked == ["aaa", "aaa", "aaa", "a"]
        assert max(days.ms) <= BUDGET_MS

    asyncio.run(scenario())


def test_steps_longer_than_the_budget_have_a_turn_each() -> None:
    async def scenario() -> None:
        days = Days()
        await days.watch(count(days, "a", 3, ms=2 * BUDGET_MS))
        assert days.worked == ["a"] * 3

    asyncio.run(scenario())


def test_short_work_does_not_wait_at_all() -> None:
    async def scenario() -> None:
        days = Days()
        await days.watch(count(days, "a", 1000, ms=0.001))
        assert days.worked == ["a" * 1000]

    asyncio.run(scenario())


def test_works_side_by_side_take_turns_and_share_one_budget() -> None:
    async def scenario() -> None:
        days = Days()
        await days.watch(*(count(days, name, 4, ms=0.4 * BUDGET_MS) for name in "abc"))
        assert sorted(days.worked) == ["aa", "aa", "bb", "bb", "cc", "cc"]
        assert days.worked[2:] == ["bb", "cc", "bb", "cc"]
        assert max(days.ms) <= BUDGET_MS

    asyncio.run(scenario())


def test_work_that_is_cancelled_while_it_waits_holds_nobody_up() -> None:
    async def scenario() -> None:
        days = Days()
        loop = asyncio.get_running_loop()
        cancelled = loop.create_task(count(days, "b", 4, ms=0.6 * BUDGET_MS))

        async def cancel() -> None:
            await asyncio.sleep(0)  # noqa: TID251
            cancelled.cancel()

        await days.watch(
            count(days, "a", 3, ms=0.6 * BUDGET_MS),
            cancel(),
            count(days, "c", 2, ms=0.6 * BUDGET_MS),
        )
        assert "".join(days.worked).count("a") == 3
        assert "".join(days.worked).count("c") == 2
        assert cancelled.cancelled()

    asyncio.run(scenario())


def test_an_item_is_made_after_others_were_served() -> None:
    async def scenario() -> None:
        days = Days()
        log: list[str] = []

        def items() -> Iterator[int]:
            for number in range(3):
                log.append(f"made {number}")
                yield number

        async def work() -> None:
            async for number in days.turns.slices().each(items()):
                log.append(f"used {number}")
                days.step("a", BUDGET_MS)
                asyncio.get_running_loop().call_soon(log.append, "others")

        await days.watch(work())
        assert log[:5] == ["made 0", "used 0", "others", "made 1", "used 1"]

    asyncio.run(scenario())


def test_work_that_is_no_loop_over_items_gives_way_too() -> None:
    async def scenario() -> None:
        days = Days()

        async def work() -> None:
            slices = days.turns.slices()
            for _ in range(4):
                await slices.give_way()
                days.step("a", 0.4 * BUDGET_MS)

        await days.watch(work())
        assert days.worked == ["aa", "aa"]

    asyncio.run(scenario())


def test_an_error_of_the_items_ends_the_work() -> None:
    async def scenario() -> None:
        def items() -> Iterator[int]:
            yield 1
            raise ValueError("no more")

        seen: AsyncIterator[int] = Days().turns.slices().each(items())
        with pytest.raises(ValueError, match="no more"):
            [_ async for _ in seen]

    asyncio.run(scenario())
