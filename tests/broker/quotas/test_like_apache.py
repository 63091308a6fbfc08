"""Drawn amounts at drawn times: rates, buckets and rests are Apache Kafka's, to the last digit."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from broker.quotas.sampled_rate import LONGEST_MS, SampledRate, Span
from broker.quotas.token_bucket import TokenBucket
from tests.golden.java_quotas import ask

if TYPE_CHECKING:
    from collections.abc import Iterator

SERIES, STEPS = 40, 300
START_MS = 1_700_000_000_000
GAPS_MS = (0, 1, 7, 100, 999, 1000, 1001, 3000, 9999, 11_000, 40_000)

Step = tuple[float, float, int]


def drawn() -> Iterator[tuple[Span, list[Step]]]:
    """Series of amounts, limits and times."""
    dice = random.Random(14)
    for _ in range(SERIES):
        span = Span(dice.choice((1, 2, 3, 11)), dice.choice((500, 1000, 2000)))
        now_ms = START_MS
        steps = []
        for _ in range(STEPS):
            now_ms += dice.choice(GAPS_MS)
            amount = dice.choice((1.0, -1.0, 0.5, 1000.0, float(dice.randrange(100_000))))
            steps.append((amount, dice.choice((0.1, 1.0, 50.5, 1024.0)), now_ms))
        yield span, steps


@pytest.mark.java
@pytest.mark.process
def test_rates_and_buckets_are_apache_kafkas() -> None:
    series = list(drawn())
    lines = []
    for span, steps in series:
        for kind in ("rate", "bucket"):
            lines.append(f"span {span.windows} {span.window_ms}")
            lines += [f"{kind} {amount} {limit} {now_ms}" for amount, limit, now_ms in steps]
    expected = iter(ask(lines))

    for span, steps in series:
        rate, bucket = SampledRate(span), TokenBucket(span)
        for amount, limit, now_ms in steps:
            rate.record(amount, now_ms)
            rest_ms = rate.throttle_ms(limit, now_ms)
            measured = (rate.per_second(now_ms), rate.elapsed_ms(now_ms), rest_ms)
            value, elapsed_ms, rest_ms = next(expected)
            assert measured == (value, elapsed_ms, min(rest_ms, LONGEST_MS))
        for amount, limit, now_ms in steps:
            bucket.record(amount, limit, now_ms)
            rest_ms = min(next(expected).rest_ms, LONGEST_MS)
            assert bucket.throttle_ms(limit, now_ms) == rest_ms
    assert next(expected, None) is None
