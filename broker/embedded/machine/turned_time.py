"""Time that a test can advance: it runs by itself, and jumps on demand.

The loop's timers and both of the broker's clocks follow it, so that a week's wait (deletion by
retention) or ten seconds' (a session, a transaction timeout) is over at once.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Protocol

from broker.runtime.clock import SystemClock

STEPS: int = 1_000
"""Maximum number of steps of an advance, roughly; each goes to the next due timer."""
TURNS_PER_STEP = 4
"""Turns of the loop in which due timers and their follow-up work run."""


class TurnedTime:
    """Offset of one broker's, or one cluster's, clock from the machine's."""

    def __init__(self) -> None:
        self.seconds = 0.0


class TurnedClock:
    """`broker.runtime.clock.Clock`, ahead by the advances of the test."""

    def __init__(self, turned: TurnedTime) -> None:
        self._turned = turned
        self._system = SystemClock()

    def now_ms(self) -> int:
        """Wall clock, milliseconds since the epoch."""
        return self._system.now_ms() + int(self._turned.seconds * 1000)

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never goes back."""
        return self._system.monotonic_ms() + int(self._turned.seconds * 1000)


class Turnable(Protocol):
    """Timers that follow the advanced time."""

    def time(self) -> float:
        """Seconds since some moment."""
        ...

    def next_due(self) -> float | None:
        """Time at which the next timer is due, by `time`; None without timers."""
        ...

    def catch_up(self) -> None:
        """Call the due timers in the next turn of the loop, after an advance."""
        ...


class TurnableLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow the advanced time."""

    def __init__(self, turned: TurnedTime) -> None:
        super().__init__()
        self._turned = turned

    def time(self) -> float:
        """Seconds since some moment."""
        return time.monotonic() + self._turned.seconds

    def next_due(self) -> float | None:
        """Time at which the next timer is due, by `time`; None without timers."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((one.when() for one in timers if not one.cancelled()), default=None)

    def catch_up(self) -> None:
        """No effect: the loop looks at its time in each turn."""


def time_span(seconds: float, hours: float, days: float) -> float:
    """Time by which a test advances the clock, in seconds. Raises ValueError if negative."""
    span = seconds + 3600 * (hours + 24 * days)
    if not 0 <= span < math.inf:
        raise ValueError(f"time is turned forward, by so much and no more, and not by {span} s")
    return span


async def turn(turned: TurnedTime, seconds: float, timers: Turnable, steps: int = STEPS) -> None:
    """Advance the time; returns when the timers due by then have been called.

    Work that they start on other threads may still be under way.
    """
    loop = asyncio.get_running_loop()
    end = turned.seconds + seconds
    shortest = seconds / steps
    while turned.seconds < end:
        due = timers.next_due()
        wanted = end if due is None else turned.seconds + max(due - timers.time(), shortest)
        turned.seconds = min(wanted, end)
        timers.catch_up()
        for _ in range(TURNS_PER_STEP):
            passed = loop.create_future()
            loop.call_soon(passed.set_result, None)
            await passed
