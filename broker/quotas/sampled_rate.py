"""Recent rate per second of an amount, equal to Apache Kafka's to the digit.

Amounts are gathered in samples of one window each. The rate is the sum of all samples over the time
since the oldest began; but at least all windows except one count as time, so that a client that has
just begun is not taken for a fast one:

    10 windows of 1 s and the current one; 1,000 bytes within the first 200 ms of all
    rate   = 1,000 bytes / (10 s + 0.2 s) = 98 bytes/s

The throttle time of a client above its limit is such that the same sum would be within it:

    limit 50 bytes/s:  rest = (98 - 50) / 50 x 10.2 s = 9.8 s;  1,000 bytes / 20 s = 50 bytes/s

Source: org.apache.kafka.common.metrics.stats.Rate, SampledStat; QuotaUtils.throttleTime.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from config.broker import BrokerConfig

SECOND_MS = 1000
LONGEST_MS = 2**31 - 1
"""Longest throttle time that an answer can name."""


class Span(NamedTuple):
    """Over how long a rate is taken: `quota.window.*`, or `controller.quota.window.*`."""

    windows: int
    window_ms: int


def client_span(config: BrokerConfig) -> Span:
    """Span of produce, fetch and request quotas, and of connections."""
    return Span(config.quota_window_num, config.quota_window_size_seconds * SECOND_MS)


def controller_span(config: BrokerConfig) -> Span:
    """Span of the controller mutation quota."""
    seconds = config.controller_quota_window_size_seconds
    return Span(config.controller_quota_window_num, seconds * SECOND_MS)


class _Sample:
    __slots__ = ("amount", "began_ms", "last_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.amount = 0.0
        self.began_ms = self.last_ms = now_ms


class SampledRate:
    """The rate of one user or client."""

    __slots__ = ("_current", "_samples", "_span")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._samples: list[_Sample] = []
        """A ring: the windows, and one that begins before them and overlaps the first."""
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Add an amount; a negative one reverts an earlier one."""
        sample = self._at(now_ms)
        sample.amount += amount
        sample.last_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        """The rate now."""
        elapsed_ms = self.elapsed_ms(now_ms)
        total = 0.0
        for sample in self._samples:  # as Apache Kafka adds: `sum` is more exact from 3.12 on
            total += sample.amount
        return total / (elapsed_ms / SECOND_MS)

    def elapsed_ms(self, now_ms: int) -> int:
        """The time over which the rate is taken."""
        windows, window_ms = self._span
        for sample in self._samples:
            if now_ms - sample.last_ms >= windows * window_ms:
                sample.reset(now_ms)
        oldest_ms = min((sample.began_ms for sample in self._samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        lacking = windows - 1 - elapsed_ms // window_ms
        return max(elapsed_ms + max(lacking, 0) * window_ms, 1)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Throttle time until the rate is within `limit`, which is positive; 0 if it is."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        return rounded_ms((rate - limit) / limit * self.elapsed_ms(now_ms))

    def _at(self, now_ms: int) -> _Sample:
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.began_ms < self._span.window_ms:
            return sample
        self._current = (self._current + 1) % (self._span.windows + 1)
        if self._current >= len(samples):
            samples.append(_Sample(now_ms))
        else:
            samples[self._current].reset(now_ms)
        return samples[self._current]


def rounded_ms(milliseconds: float) -> int:
    """Half a millisecond counts as one."""
    return min(math.floor(min(milliseconds, LONGEST_MS) + 0.5), LONGEST_MS)
