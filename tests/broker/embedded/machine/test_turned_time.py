"""Time that is turned: timers are called in their order, at their time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from broker.embedded.machine.turned_time import TurnableLoop, TurnedClock, TurnedTime, turn
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

    loop.run_until_complete(turn(turned, 3700))

    assert came == [60, 3600]
    assert turned.seconds == 3700


def test_what_is_done_periodically_is_done_each_time(
    loop: TurnableLoop, turned: TurnedTime
) -> None:
    times: list[int] = []
    Timers(loop).every(60_000, lambda: times.append(1))

    loop.run_until_complete(turn(turned, 3600.5))

    assert len(times) == 60


def test_a_turn_of_a_year_takes_no_time_in_spite_of_short_timers(
    loop: TurnableLoop, turned: TurnedTime
) -> None:
    times: list[int] = []
    Timers(loop).every(5, lambda: times.append(1))
    began = time.monotonic()

    loop.run_until_complete(turn(turned, 365 * 86_400))

    assert 0 < len(times) <= 1_100
    assert time.monotonic() - began < 5


def test_both_clocks_go_with_it(turned: TurnedTime) -> None:
    clock = TurnedClock(turned)
    now_ms, monotonic_ms = clock.now_ms(), clock.monotonic_ms()
    turned.seconds = 86_400
    assert 86_400_000 <= clock.now_ms() - now_ms < 86_401_000
    assert 86_400_000 <= clock.monotonic_ms() - monotonic_ms < 86_401_000
