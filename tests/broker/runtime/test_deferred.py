"""Deferred answers: once, now or later, with a value or an error, and abandoned."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING

import pytest

from broker.runtime.deferred import AbandonedError, Deferred, HangUp, from_future, in_background
from protocol.errors import ApiError, ErrorCode
from tests.controller.harness import turns
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from collections.abc import Callable


def outcomes(deferred: Deferred[int]) -> list[object]:
    """Return the list that the results are added to as they arrive."""
    seen: list[object] = []
    deferred.then(seen.append, seen.append)
    return seen


def test_listener_set_before_completion_gets_the_value() -> None:
    deferred: Deferred[int] = Deferred()
    seen = outcomes(deferred)
    assert seen == []
    assert deferred.complete(7)
    assert seen == [7]


def test_listener_set_after_completion_gets_the_value_at_once() -> None:
    deferred: Deferred[int] = Deferred()
    deferred.complete(7)
    assert outcomes(deferred) == [7]


def test_second_completion_changes_nothing() -> None:
    deferred: Deferred[int] = Deferred()
    seen = outcomes(deferred)
    deferred.complete(1)
    assert not deferred.complete(2)
    assert not deferred.fail(KeyError())
    assert seen == [1]
    assert deferred.value == 1


def test_error_instead_of_a_value_reaches_the_listener_now_or_later() -> None:
    for is_late in (True, False):
        deferred: Deferred[int] = Deferred()
        error = KeyError("gone")
        seen = outcomes(deferred) if is_late else []
        assert deferred.fail(error)
        assert (seen if is_late else outcomes(deferred)) == [error]
        assert deferred.is_complete
        with pytest.raises(KeyError):
            _ = deferred.value


def test_abandoning_notifies_the_completer_and_drops_the_listener() -> None:
    told: list[str] = []
    deferred: Deferred[int] = Deferred(on_abandon=lambda: told.append("gone"))
    seen = outcomes(deferred)
    deferred.abandon()
    deferred.complete(1)
    assert told == ["gone"]
    assert seen == []


@pytest.mark.parametrize("settle", [lambda one: one.complete(1), lambda one: one.fail(KeyError())])
def test_listener_that_raises_is_no_trouble_of_the_completer(
    settle: Callable[[Deferred[int]], bool], caplog: pytest.LogCaptureFixture
) -> None:
    deferred: Deferred[int] = Deferred()

    def fail(_: object) -> None:
        raise BrokenPipeError

    deferred.then(fail, fail)

    assert settle(deferred)
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_map_passes_the_functions_result_or_error() -> None:
    deferred: Deferred[int] = Deferred()
    halves = deferred.map(lambda value: 10 // value)
    seen = outcomes(halves)
    deferred.complete(5)
    assert seen == [2]

    deferred = Deferred()
    seen = outcomes(deferred.map(lambda value: 10 // value))
    deferred.complete(0)
    assert [type(one) for one in seen] == [ZeroDivisionError]


def test_function_that_defers_in_turn_is_followed_and_abandoned() -> None:
    freed: list[str] = []
    first: Deferred[int] = Deferred(is_ordered_only=True)
    second: Deferred[int] = Deferred(on_abandon=lambda: freed.append("second"))
    whole: Deferred[int] = first.map(lambda _: second)
    assert whole.is_ordered_only
    first.complete(1)
    assert not whole.is_complete

    whole.abandon()
    assert freed == ["second"]

    first, second = Deferred(), Deferred()
    seen = outcomes(first.map(lambda _: second))
    first.complete(1)
    second.fail(KeyError("late"))
    assert [type(one) for one in seen] == [KeyError]


def test_a_deferred_followed_after_abandonment_is_abandoned() -> None:
    freed: list[str] = []
    whole: Deferred[int] = Deferred()
    other: Deferred[int] = Deferred(on_abandon=lambda: freed.append("other"))

    whole.abandon()
    whole.follow(other)

    assert freed == ["other"]


@pytest.mark.parametrize("has_begun", [False, True])
def test_work_that_is_cancelled_leaves_no_answer_open(*, has_begun: bool) -> None:
    """If its own wait is cancelled, its client would wait for ever, on a throttled connection."""

    async def scenario() -> None:
        supervised = supervision()
        inner: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def work() -> int:
            return await inner

        seen = outcomes(in_background(supervised.spawn, work(), "work"))
        if has_begun:
            await turns(1)
            inner.cancel()
            await turns(10)
        await end(supervised)
        await turns(1)

        assert [type(one) for one in seen] == [AbandonedError]

    asyncio.run(scenario())


def test_error_before_a_function_skips_it() -> None:
    deferred: Deferred[int] = Deferred()
    called: list[int] = []
    seen = outcomes(deferred.map(called.append))  # type: ignore[arg-type]
    deferred.fail(KeyError("first"))
    assert [type(one) for one in seen] == [KeyError]
    assert called == []


def test_guarded_callback_that_raises_fails_the_answer_it_was_to_make() -> None:
    deferred: Deferred[int] = Deferred()
    seen = outcomes(deferred)

    def expire() -> None:
        raise ZeroDivisionError

    deferred.guard(expire)()

    assert [type(one) for one in seen] == [ZeroDivisionError]


def test_future_brings_its_result_its_error_or_that_it_was_cancelled() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[int]] = [loop.create_future() for _ in range(3)]
        seen = [outcomes(from_future(future)) for future in futures]
        futures[0].set_result(1)
        futures[1].set_exception(KeyError())
        futures[2].cancel()
        await asyncio.sleep(0)  # noqa: TID251
        assert seen[0] == [1]
        assert [type(one[0]) for one in seen[1:]] == [KeyError, AbandonedError]

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [ApiError(ErrorCode.INVALID_RECORD), HangUp("for a reason")])
def test_foreseen_error_leaves_no_garbage_cycle(error: Exception) -> None:
    class Answering:
        def __init__(self) -> None:
            self.deferred: Deferred[int] = Deferred()

        def answer(self) -> None:
            raise error

    answering = Answering()
    answering.deferred.guard(answering.answer)()
    told: list[Exception] = []
    answering.deferred.then(lambda _: None, told.append)
    gone = weakref.ref(answering)
    del answering

    assert told == [error]
    assert gone() is None


def test_unforeseen_error_says_where_it_was_raised() -> None:
    deferred: Deferred[float] = Deferred()
    deferred.guard(lambda: 1 / 0)()
    told: list[Exception] = []
    deferred.then(lambda _: None, told.append)

    assert told[0].__traceback__ is not None
