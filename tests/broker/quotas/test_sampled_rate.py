"""Rates over windows, and how long to rest for one that is too high."""

from __future__ import annotations

import pytest

from broker.quotas.sampled_rate import LONGEST_MS, SampledRate, Span, rounded_ms

SPAN = Span(11, 1000)
START_MS = 5_000


def test_first_amount_counts_as_if_all_windows_but_one_had_passed() -> None:
    rate = SampledRate(SPAN)

    rate.record(1000, START_MS)

    assert rate.per_second(START_MS) == 100
    assert rate.per_second(START_MS + 200) == 1000 / 10.2


def test_rest_would_bring_the_rate_down_to_the_limit() -> None:
    rate = SampledRate(SPAN)
    rate.record(1000, START_MS)

    rest_ms = rate.throttle_ms(50, START_MS + 200)

    assert rest_ms == 9800
    assert rate.elapsed_ms(START_MS + 200) + rest_ms == 1000 / 50 * 1000


def test_rate_at_the_limit_needs_no_rest() -> None:
    rate = SampledRate(SPAN)
    rate.record(1000, START_MS)

    assert rate.throttle_ms(100, START_MS) == 0
    assert rate.throttle_ms(99.9, START_MS) > 0


def test_steady_traffic_has_its_own_rate() -> None:
    rate = SampledRate(SPAN)

    for now_ms in range(START_MS, START_MS + 60_000, 100):
        rate.record(50, now_ms)

    assert rate.per_second(START_MS + 60_000) == pytest.approx(500, rel=0.02)


def test_samples_older_than_all_windows_do_not_count() -> None:
    rate = SampledRate(SPAN)
    rate.record(1_000_000, START_MS)

    assert rate.per_second(START_MS + 10_999) > 0
    assert rate.per_second(START_MS + 11_000) == 0


def test_sample_that_overlaps_the_first_window_still_counts() -> None:
    rate = SampledRate(SPAN)
    rate.record(500, START_MS)
    rate.record(500, START_MS + 900)

    assert rate.per_second(START_MS + 11_100) == 1000 / 11.1


def test_amount_taken_back_was_never_there() -> None:
    rate = SampledRate(SPAN)
    rate.record(100, START_MS)
    rate.record(900, START_MS + 10)

    rate.record(-900, START_MS + 10)

    assert rate.per_second(START_MS + 10) == pytest.approx(100 / 10.01)


def test_number_of_samples_is_bounded() -> None:
    rate = SampledRate(Span(2, 1000))

    for now_ms in range(0, 100_000, 1000):
        rate.record(1, now_ms)

    assert rate.per_second(99_000) == 2 / 1.0, "what is two windows old has gone"


@pytest.mark.parametrize(("milliseconds", "whole"), [(0.4, 0), (0.5, 1), (1e300, LONGEST_MS)])
def test_rest_is_whole_milliseconds_that_fit_in_an_answer(milliseconds: float, whole: int) -> None:
    assert rounded_ms(milliseconds) == whole
