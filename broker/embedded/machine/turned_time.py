"""Time that a test can turn forward: it goes on by itself, and jumps when told to.

The loop's timers and both of the broker's clocks go by it, so that what would take a week (deleting
by retention) or ten seconds (a session, a transaction's time-out) happens at once.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Protocol

from broker.runtime.clock import SystemClock

STEPS: int = 1_000
"""A turn is made in at most about so many steps, each to where the next timer is due."""
TURNS_PER_STEP = 4
"""Turns of the loop in which what is due does its work, and hands on to others."""


class TurnedTime:
    """How far one broker, or one cluster, is ahead of the machine's clock."""

    def __init__(self) -> None:
        self.seconds = 0.0


class TurnedClock:
    """`broker.runtime.clock.Clock`, ahead by what the test has turned."""

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
    """Timers that go by turned time."""

    def time(self) -> float:
        """Seconds since some moment."""
        ...

    def next_due(self) -> float | None:
        """When the next timer is due, by `time`; None without timers."""
        ...

    def catch_up(self) -> None:
        """Time was turned: what is due is called in the next turn of the loop."""
        ...


class TurnableLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers go by turned time."""

    def __init__(self, turned: TurnedTime) -> None:
        super().__init__()
        self._turned = turned

    def time(self) -> float:
        """Seconds since some moment."""
        return time.monotonic() + self._turned.seconds

    def next_due(self) -> float | None:
        """When the next timer is due, by `time`; None without timers."""
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((one.when() for one in timers if not one.cancelled()), default=None)

    def catch_up(self) -> None:
        """It looks at its time in each turn."""


def time_span(seconds: float, hours: float, days: float) -> float:
    """How far a test turns time, in seconds. Raises ValueError: it only goes forward."""
    span = seconds + 3600 * (hours + 24 * days)
    if not 0 <= span < math.inf:
        raise ValueError(f"time is turned forward, by so much and no more, and not by {span} s")
    return span


async def turn(turned: TurnedTime, seconds: float, timers: Turnable, steps: int = STEPS) -> None:
    """Turn time forward; returns when the timers due by then have been called.

    What they begin on other threads may still be under way.
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
