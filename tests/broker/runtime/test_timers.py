"""Series of timers: what ends them and what does not."""

from __future__ import annotations

import asyncio

from broker.runtime.timers import Timers


class Calls:
    """A periodic callback that may fail, or end its own series."""

    def __init__(self, *, fails: bool = False) -> None:
        self.count = 0
        self.fails = fails
        self.enough = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        if self.count == 3:
            self.enough.set()
        if self.fails:
            raise ZeroDivisionError


def test_series_goes_on_after_a_call_that_raises() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        failed: list[str] = []
        timers.on_failure = lambda name, _: failed.append(name)
        calls = Calls(fails=True)
        series = timers.every(0, calls)
        await asyncio.wait_for(calls.enough.wait(), 30)
        series.cancel()
        assert len(failed) >= 3

    asyncio.run(scenario())


def test_series_that_ends_itself_in_its_callback_is_over() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        counts: list[int] = []

        def end() -> None:
            counts.append(1)
            series.cancel()

        series = timers.every(0, end)
        others = Calls()
        timers.every(0, others)
        await asyncio.wait_for(others.enough.wait(), 30)
        timers.close()
        assert counts == [1]

    asyncio.run(scenario())
