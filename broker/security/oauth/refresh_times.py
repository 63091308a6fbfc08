"""Times at which this broker's own token is replaced: before it expires, and not too often.

That is after a share of its life, drawn between `sasl.login.refresh.window.factor` and that plus
`….window.jitter`, so that the brokers of a cluster do not all ask at once; but
`….buffer.seconds` before the end at the latest, and `….min.period.seconds` from now at the
earliest. The two seconds count only for tokens that live longer than both together (as in Apache
Kafka, whose `ExpiringCredentialRefreshingLogin` this follows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.broker import BrokerConfig

MS_PER_SECOND = 1000


@dataclass(frozen=True, slots=True)
class RefreshTimes:
    """As configured."""

    factor: float
    jitter: float
    buffer_ms: int
    min_period_ms: int
    draw: Callable[[], float]
    """At least 0 and less than 1."""

    def refresh_at_ms(self, now_ms: int, expires_at_ms: int) -> int:
        """Time at which to replace a token obtained now."""
        left_ms = max(0, expires_at_ms - now_ms)
        at_ms = now_ms + int(left_ms * (self.factor + self.jitter * self.draw()))
        if self.buffer_ms + self.min_period_ms >= left_ms:
            return at_ms
        return max(now_ms + self.min_period_ms, min(at_ms, expires_at_ms - self.buffer_ms))


def refresh_times(config: BrokerConfig, draw: Callable[[], float]) -> RefreshTimes:
    """Refresh times of a configuration."""
    return RefreshTimes(
        config.sasl_login_refresh_window_factor,
        config.sasl_login_refresh_window_jitter,
        config.sasl_login_refresh_buffer_seconds * MS_PER_SECOND,
        config.sasl_login_refresh_min_period_seconds * MS_PER_SECOND,
        draw,
    )
