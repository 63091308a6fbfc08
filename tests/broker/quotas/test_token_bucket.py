"""Permits that come at a rate and pile up."""

from __future__ import annotations

from broker.quotas.sampled_rate import Span
from broker.quotas.token_bucket import TokenBucket

SPAN = Span(11, 1000)
PER_SECOND = 2.0


def test_new_bucket_is_full() -> None:
    bucket = TokenBucket(SPAN)

    bucket.record(22, PER_SECOND, 0)
    assert bucket.throttle_ms(PER_SECOND, 0) == 0

    bucket.record(1, PER_SECOND, 0)
    assert bucket.throttle_ms(PER_SECOND, 0) == 500


def test_debt_is_paid_at_the_rate() -> None:
    bucket = TokenBucket(SPAN)
    bucket.record(30, PER_SECOND, 0)

    assert bucket.throttle_ms(PER_SECOND, 0) == 4000
    assert bucket.throttle_ms(PER_SECOND, 1500) == 2500
    assert bucket.throttle_ms(PER_SECOND, 4000) == 0


def test_bucket_never_holds_more_than_all_windows_bring() -> None:
    bucket = TokenBucket(SPAN)
    bucket.record(1, PER_SECOND, 0)

    bucket.record(30, PER_SECOND, 1_000_000)

    assert bucket.throttle_ms(PER_SECOND, 1_000_000) == 4000


def test_lower_limit_makes_it_smaller() -> None:
    bucket = TokenBucket(SPAN)
    bucket.record(0, 100.0, 0)

    bucket.record(12, 1.0, 0)

    assert bucket.throttle_ms(1.0, 0) == 1000
