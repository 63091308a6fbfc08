"""Throttle of the traffic of replicas that are still catching up (KIP-73).

A topic names the replicas, a broker the rate. Traffic of all named replicas is counted; only one
that is out of sync is delayed, so that a throttle never makes a replica fall behind.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from config.key import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.partitions.partition import Partition
    from config.broker import BrokerConfig
    from config.topic import TopicConfig

ALL = "*"
SECOND_MS = 1000


class Span(NamedTuple):
    """Over how long a rate is taken: `replication.quota.window.*`."""

    windows: int
    window_ms: int


class Rate:
    """Bytes a second, taken over a span, and whether it is more than allowed."""

    def __init__(self, span: Span, now_ms: Callable[[], int]) -> None:
        """`now_ms` is monotonic."""
        self.bytes_per_second = LONG_MAX
        """As configured; changed while the broker runs."""
        self._span = span
        self._now_ms = now_ms
        self._samples: deque[list[int]] = deque(maxlen=span.windows + 1)
        """Beginning of a window, and bytes in it."""

    def record(self, size: int) -> None:
        """Count bytes."""
        now_ms = self._now_ms()
        if not self._samples or now_ms - self._samples[-1][0] >= self._span.window_ms:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += size

    @property
    def is_exceeded(self) -> bool:
        """Return whether the rate of the last windows exceeds the limit."""
        if self.bytes_per_second == LONG_MAX:
            return False
        now_ms = self._now_ms()
        window_ms = self._span.window_ms
        while self._samples and now_ms - self._samples[0][0] >= self._span.windows * window_ms:
            self._samples.popleft()
        if not self._samples:
            return False
        total = sum(size for _, size in self._samples)
        elapsed_ms = max(now_ms - self._samples[0][0], window_ms)
        return total * SECOND_MS > self.bytes_per_second * elapsed_ms


class Throttle(Rate):
    """One direction of one broker."""

    def __init__(
        self,
        local_id: int,
        listed: Callable[[TopicConfig], tuple[str, ...]],
        span: Span,
        now_ms: Callable[[], int],
    ) -> None:
        """`listed` finds a topic's throttled replicas; `now_ms` is monotonic."""
        super().__init__(span, now_ms)
        self._local_id = local_id
        self._listed = listed

    def covers(self, partition: Partition) -> bool:
        """Return whether the topic throttles the local replica."""
        listed = self._listed(partition.log.config)
        if not listed:
            return False
        return ALL in listed or f"{partition.index}:{self._local_id}" in listed


class Throttles(NamedTuple):
    """Both directions."""

    leader: Throttle
    follower: Throttle


def replication_throttles(config: BrokerConfig, monotonic_ms: Callable[[], int]) -> Throttles:
    """Make a broker's throttles, of the rates that it has now."""
    span = Span(
        config.replication_quota_window_num,
        config.replication_quota_window_size_seconds * SECOND_MS,
    )
    throttles = Throttles(
        *(
            Throttle(config.broker_id, listed, span, monotonic_ms)
            for listed in (
                lambda config: config.leader_replication_throttled_replicas,
                lambda config: config.follower_replication_throttled_replicas,
            )
        )
    )
    throttles.leader.bytes_per_second = config.leader_replication_throttled_rate
    throttles.follower.bytes_per_second = config.follower_replication_throttled_rate
    return throttles
