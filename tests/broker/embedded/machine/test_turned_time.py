"""Time that is turned: timers are called in their order, at their time."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import pytest

from broker.embedded.machine.turned_time import (
    TurnableLoop,
    TurnedClock,
    TurnedTime,
    time_span,
    turn,
)
from broker.embedded.machine.turned_timers import TurnedTimers
from broker.runtime.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def turned() -> TurnedTime:
    return TurnedTime()


@pytest.fixture
def loop(turned: TurnedTime) -> Iterator[TurnableLoop]:
    loop = TurnableLoop(turned)
    yield loop
    loop.close()


def test_timers_come_in_their_order_each_at_its_time(
    loop: TurnableLoop, turned: TurnedTime
) -> None:
    clock, came = TurnedClock(turned), []
    began = clock.monotonic_ms()
    for delay_s in (3600, 60, 7200):
        loop.call_later(delay_s, lambda: came.append(round((clock.monotonic_ms() - began) / 1000)))

    loop.run_until_complete(turn(turned, 3700, loop))

    assert came == [60, 3600]
    assert turned.seconds == 3700


def test_a_periodic_timer_fires_for_each_period_turned(
    loop: TurnableLoop, turned: TurnedTime
) -> None:
    times: list[int] = []
    Timers(loop).every(60_000, lambda: times.append(1))

    loop.run_until_complete(turn(turned, 3600.5, loop))

    assert len(times) == 60


def test_a_turn_of_a_year_takes_no_time_in_spite_of_short_timers(
    loop: TurnableLoop, turned: TurnedTime
) -> None:
    times: list[int] = []
    Timers(loop).every(5, lambda: times.append(1))
    began = time.monotonic()

    loop.run_until_complete(turn(turned, 365 * 86_400, loop))

    assert 0 < len(times) <= 1_100
    assert time.monotonic() - began < 5


def test_timers_on_a_loop_that_is_not_turned_come_at_their_time(turned: TurnedTime) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        timers, clock, came = TurnedTimers(loop, turned), TurnedClock(turned), []
        began, began_real = clock.monotonic_ms(), loop.time()
        for delay_s in (3600, 60, 7200):
            timers.schedule(
                delay_s * 1000,
                lambda: came.append(round((clock.monotonic_ms() - began) / 1000)),
            )
        timers.schedule(5_000, lambda: came.append(5)).cancel()
        asleep = loop.create_task(timers.sleep(1_800_000))

        await turn(turned, 3700, timers)

        assert came == [60, 3600]
        assert asleep.done()
        assert loop.time() - began_real < 5
        assert round((timers.next_due() or 0) - timers.time()) == 3500

    asyncio.run(test())


def test_a_timer_fires_in_real_time_without_turning(turned: TurnedTime) -> None:
    async def test() -> None:
        came = asyncio.Event()
        timers = TurnedTimers(asyncio.get_running_loop(), turned)
        timers.schedule(1, came.set)
        await asyncio.wait_for(came.wait(), 10)
        assert timers.next_due() is None

    asyncio.run(test())


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf])
def test_time_that_cannot_be_turned_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="forward"):
        time_span(seconds, 0, 0)
    assert time_span(1, 1, 1) == 90_001


def test_wall_and_monotonic_clocks_are_turned_together(turned: TurnedTime) -> None:
    clock = TurnedClock(turned)
    now_ms, monotonic_ms = clock.now_ms(), clock.monotonic_ms()
    turned.seconds = 86_400
    assert 86_400_000 <= clock.now_ms() - now_ms < 86_401_000
    assert 86_400_000 <= clock.monotonic_ms() - monotonic_ms < 86_401_000
