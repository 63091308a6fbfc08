"""Limit on the connections per second of an address (KIP-612).

A connection above the limit is accepted, not served, and closed after a while, which slows down a
client that retries. It does not count: a client that keeps trying gets in at the limit.

Source: kafka.network.ConnectionQuotas.recordIpConnectionMaybeThrottle.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from broker.quotas.sampled_rate import SampledRate

if TYPE_CHECKING:
    from broker.quotas.sampled_rate import Span


class ConnectionRates:
    """The rates of all addresses; of most, nothing is counted."""

    def __init__(self, span: Span, most: int) -> None:
        """Rates of the `most` addresses that connected last are kept."""
        self._span = span
        self._most = most
        self._limits: dict[str | None, float] = {}
        """By address; None stands for all others."""
        self._rates: OrderedDict[str, SampledRate] = OrderedDict()
        self.is_enabled = False
        """True if any limit is set."""
        self.throttle_count = 0
        """Connections that were above a limit."""

    def set(self, address: str | None, limit: float | None) -> None:
        """Limit an address, or with None those that have no limit of their own."""
        if limit is None:
            self._limits.pop(address, None)
        else:
            self._limits[address] = limit
        self.is_enabled = bool(self._limits)

    def throttle_ms(self, address: str, now_ms: int) -> int:
        """Count a connection; 0 if it may be served, else how long to keep it before its end."""
        limit = self._limits.get(address, self._limits.get(None))
        if limit is None:
            return 0
        rate = self._rates.setdefault(address, SampledRate(self._span))
        self._rates.move_to_end(address)
        if len(self._rates) > self._most:
            self._rates.popitem(last=False)
        rate.record(1, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms) if limit > 0 else self._span.window_ms
        if throttle_ms:
            rate.record(-1, now_ms)
            self.throttle_count += 1
        return min(throttle_ms, self._span.window_ms)
