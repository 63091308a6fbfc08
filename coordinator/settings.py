"""The limits that a broker's configuration sets for its groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.consumer_groups.settings import ConsumerGroupSettings
from coordinator.share_groups.settings import ShareGroupSettings
from coordinator.streams_groups.settings import StreamsGroupSettings


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Attribute for attribute a key of `server.properties`; the defaults are Apache's."""

    min_session_timeout_ms: int = 6_000
    """group.min.session.timeout.ms"""
    max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    initial_rebalance_delay_ms: int = 3_000
    """group.initial.rebalance.delay.ms: how long an empty group waits for more members to join."""
    max_size: int = 2**31 - 1
    """group.max.size"""
    offset_metadata_max_bytes: int = 4_096
    """offset.metadata.max.bytes; in UTF-16 units, as Apache Kafka counts."""
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    """offsets.retention.minutes in milliseconds."""
    new_member_join_timeout_ms: int = 300_000
    """Time for which a new member may keep a JoinGroup parked; a constant in Apache Kafka too."""
    consumer: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    """Settings of groups of the newer protocol."""
    streams: StreamsGroupSettings = field(default_factory=StreamsGroupSettings)
    """Settings of streams groups."""
    share: ShareGroupSettings = field(default_factory=ShareGroupSettings)
    """Settings of share groups."""
