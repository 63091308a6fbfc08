"""Timers of a broker that follow advanced time on a loop that does not: that of a test."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.runtime.timers import Timers

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker.embedded.machine.turned_time import TurnedTime


class TurnedTimers(Timers):
    """Calls functions later, or as soon as time is advanced that far.

    Connections have timers of the loop itself, for throttling and idle timeouts: those follow its
    time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turned: TurnedTime) -> None:
        super().__init__(loop)
        self._turned = turned
        self._calls: dict[_Call, None] = {}
        """Calls that are neither done nor cancelled."""

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> _Call:
        """Call `callback` once, in `delay_ms` milliseconds."""
        call = _Call(self._calls, self.time() + delay_ms / 1000, callback)
        call.arm(self._loop, delay_ms / 1000)
        return call

    async def sleep(self, delay_ms: float) -> None:
        """Return in `delay_ms` milliseconds."""
        over: asyncio.Future[None] = self._loop.create_future()
        call = self.schedule(delay_ms, partial(_wake, over))
        try:
            await over
        finally:
            call.cancel()

    def time(self) -> float:
        """Seconds since some moment."""
        return self._loop.time() + self._turned.seconds

    def next_due(self) -> float | None:
        """Time at which the next call is due, by `time`; None without any."""
        return min((call.due for call in self._calls), default=None)

    def catch_up(self) -> None:
        """Time was turned: have the loop make each call when it is due now."""
        now = self.time()
        for call in sorted(self._calls, key=lambda one: one.due):
            call.arm(self._loop, call.due - now)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class _Call:
    """A call that is to be made."""

    __slots__ = ("_callback", "_calls", "_handle", "due")

    def __init__(
        self, calls: dict[_Call, None], due: float, callback: Callable[[], object]
    ) -> None:
        self.due = due
        self._calls = calls
        self._callback = callback
        self._handle: asyncio.Handle | None = None

    def arm(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Schedule the call in `seconds`, instead of its former time."""
        self.cancel()
        self._calls[self] = None
        if seconds > 0:
            self._handle = loop.call_later(seconds, self._make)
        else:
            self._handle = loop.call_soon(self._make)

    def cancel(self) -> None:
        """Call it off; no harm when it was made already."""
        self._calls.pop(self, None)
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _make(self) -> None:
        self._calls.pop(self, None)
        self._callback()
