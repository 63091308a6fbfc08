"""Work of a start that is broken off: it has ended when the start goes on to stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.cluster.admission import StartAbandonedError, unless_stopped
from tests.controller.harness import turns

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Work:
    """Opens something, waits, and closes it when it is broken off, which takes time."""

    def __init__(self) -> None:
        self.is_open = False

    async def run(self) -> None:
        self.is_open = True
        try:
            await asyncio.Event().wait()
        finally:
            await turns(10)
            self.is_open = False


def begin(stop: asyncio.Event, work: Coroutine[None, None, str | None]) -> asyncio.Task[str | None]:
    return asyncio.get_running_loop().create_task(unless_stopped(stop, work))


def test_work_has_cleaned_up_when_the_start_is_abandoned() -> None:
    async def scenario() -> None:
        stop, work = asyncio.Event(), Work()
        start = begin(stop, work.run())
        await turns(3)
        assert work.is_open
        stop.set()
        with pytest.raises(StartAbandonedError):
            await start
        assert not work.is_open

    asyncio.run(scenario())


def test_work_has_cleaned_up_when_the_start_is_cancelled_even_twice() -> None:
    async def scenario() -> None:
        work = Work()
        start = begin(asyncio.Event(), work.run())
        await turns(3)
        for _ in range(2):
            start.cancel()
            await turns(3)
        with pytest.raises(asyncio.CancelledError):
            await start
        assert not work.is_open

    asyncio.run(scenario())


def test_work_that_ignores_cancellation_returns_its_result() -> None:
    async def persist() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "a store"
        return "nothing"

    async def scenario() -> None:
        stop = asyncio.Event()
        start = begin(stop, persist())
        await turns(3)
        stop.set()
        assert await start == "a store"

    asyncio.run(scenario())


def test_an_error_raised_as_the_stop_is_set_is_propagated() -> None:
    async def scenario() -> None:
        stop = asyncio.Event()

        async def fail() -> None:
            stop.set()
            raise ValueError("odd")

        with pytest.raises(ValueError, match="odd"):
            await unless_stopped(stop, fail())

    asyncio.run(scenario())
