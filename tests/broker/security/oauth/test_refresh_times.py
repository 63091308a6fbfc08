"""Refresh time of a broker's own token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.oauth.refresh_times import RefreshTimes, refresh_times
from config.broker import BrokerConfig

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("life_ms", "drawn", "expected_ms"),
    [
        pytest.param(HOUR_MS, 0.0, HOUR_MS * 8 // 10, id="a share of its life"),
        pytest.param(HOUR_MS, 0.5, int(HOUR_MS * 0.825), id="half of the jitter is added"),
        pytest.param(1_000_000, 0.0, 700_000, id="before the buffer at its end begins"),
        pytest.param(361_000, 0.0, 61_000, id="the buffer begins just behind the least period"),
        pytest.param(360_000, 0.0, 288_000, id="too short for buffer and least period"),
        pytest.param(-5_000, 0.0, 0, id="expired already"),
    ],
)
def test_a_token_is_replaced_as_apache_kafka_does(
    life_ms: int, drawn: float, expected_ms: int
) -> None:
    times = refresh_times(BrokerConfig(), lambda: drawn)
    assert times.refresh_at_ms(NOW_MS, NOW_MS + life_ms) == NOW_MS + expected_ms


def test_a_token_is_kept_for_the_least_period() -> None:
    times = RefreshTimes(0.5, 0.0, 1_000, 60_000, lambda: 0.0)
    assert times.refresh_at_ms(NOW_MS, NOW_MS + 62_000) == NOW_MS + 60_000


@given(
    life_ms=st.integers(0, 10**10),
    drawn=st.floats(0, 1, exclude_max=True),
    buffer_s=st.integers(0, 3600),
    period_s=st.integers(0, 900),
)
def test_a_token_is_replaced_before_it_ends(
    life_ms: int, drawn: float, buffer_s: int, period_s: int
) -> None:
    times = RefreshTimes(0.8, 0.2, buffer_s * 1000, period_s * 1000, lambda: drawn)
    assert NOW_MS <= times.refresh_at_ms(NOW_MS, NOW_MS + life_ms) <= NOW_MS + life_ms
