"""Timers of the broker: a thin cover over the event loop's heap.

The loop keeps timers in a C heap and drops cancelled ones in bulk, so that scheduling and
cancelling cost three microseconds together; for the lack of a timing wheel see
docs/decisions/0014-timers-on-the-loops-heap.md. The simulation's loop has its own clock, and these
timers follow it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from broker.runtime.supervision import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable


class Cancellable(Protocol):
    """A scheduled call that can be called off."""

    def cancel(self) -> None:
        """Call it off; no harm when it was made already."""
        ...


class Timers:
    """Calls functions later."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.is_closed = False
        self.on_failure: Callable[[str, BaseException], None] = log_failure
        """Called with the errors of periodic work, by its name."""

    def close(self) -> None:
        """The broker has stopped: no series goes on."""
        self.is_closed = True

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> Cancellable:
        """Call `callback` once, in `delay_ms` milliseconds."""
        return self._loop.call_later(delay_ms / 1000, callback)

    async def sleep(self, delay_ms: float) -> None:
        """Return in `delay_ms` milliseconds."""
        over: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(delay_ms / 1000, _wake, over)
        try:
            await over
        finally:
            timer.cancel()

    def soon(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, after the current callback."""
        self._loop.call_soon(callback)

    def every(self, interval_ms: float, callback: Callable[[], object]) -> Cancellable:
        """Call `callback` repeatedly, `interval_ms` after the last call ended.

        An exception goes to `on_failure` and does not end the series.
        """
        return _Series(self, interval_ms, callback)


def extended(
    timer: asyncio.TimerHandle | None, delay_ms: float, callback: Callable[[], object]
) -> asyncio.TimerHandle:
    """Call `callback` in `delay_ms`, but not before `timer` would have, in whose place it comes."""
    loop = asyncio.get_running_loop()
    moment = loop.time() + delay_ms / 1000
    if timer is not None:
        moment = max(moment, timer.when())
        timer.cancel()
    return loop.call_at(moment, callback)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class _Series:
    """A timer that schedules itself again."""

    def __init__(self, timers: Timers, interval_ms: float, callback: Callable[[], object]) -> None:
        self._timers = timers
        self._interval_ms = interval_ms
        self._callback = callback
        self._is_over = False
        self._next: Cancellable = timers.schedule(interval_ms, self._run)

    def cancel(self) -> None:
        """End the series, also from within its own callback."""
        self._is_over = True
        self._next.cancel()

    def _run(self) -> None:
        if self._timers.is_closed:
            return
        try:
            self._callback()
        except Exception as error:  # noqa: BLE001 - reported
            name = getattr(self._callback, "__qualname__", "calls")
            self._timers.on_failure(f"periodic {name}", error)
        if not self._is_over:
            self._next = self._timers.schedule(self._interval_ms, self._run)
