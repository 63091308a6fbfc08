"""Permits that accrue at a steady rate while unused (KIP-599).

A bucket holds as many as accrue in all windows together. A request that takes more than there are
is let through, and the next has to wait until the bucket is out of debt: a request for a thousand
partitions is not refused for ever because a thousand permits never accrue.

    2 permits/s in 11 windows of 1 s: 22 at first
    30 taken:  -8 left, and the next waits for 4 s

Source: org.apache.kafka.common.metrics.stats.TokenBucket, ControllerMutationQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.quotas.sampled_rate import SECOND_MS, rounded_ms

if TYPE_CHECKING:
    from broker.quotas.sampled_rate import Span


class TokenBucket:
    """The permits of one user or client. It is full at first."""

    __slots__ = ("_last_ms", "_seconds", "_tokens")

    def __init__(self, span: Span) -> None:
        self._seconds = span.windows * span.window_ms / SECOND_MS
        self._tokens = 0.0
        self._last_ms: int | None = None

    def record(self, permits: float, limit: float, now_ms: int) -> None:
        """Take permits, which come at `limit` per second."""
        self._refill(limit, now_ms)
        self._tokens = min(self._seconds * limit, self._tokens - permits)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Throttle time until it is out of debt."""
        self._refill(limit, now_ms)
        return rounded_ms(max(0.0, -self._tokens / limit * SECOND_MS))

    def _refill(self, limit: float, now_ms: int) -> None:
        most = self._seconds * limit
        if self._last_ms is None:
            self._tokens = most
        else:
            came = limit * ((now_ms - self._last_ms) / SECOND_MS)
            self._tokens = min(most, self._tokens + came)
        self._last_ms = now_ms
