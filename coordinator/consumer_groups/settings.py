"""The limits that a broker's configuration, and that of single groups, set for consumer groups."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol, TypeVar


class MigrationPolicy(enum.Enum):
    """Conversions allowed for groups with members, between the two protocols; the key's value."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    """Only classic groups to consumer groups."""
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"
    """None, and members of the classic protocol may not join consumer groups."""

    @property
    def can_upgrade(self) -> bool:
        """True if a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def can_downgrade(self) -> bool:
        """True if a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


V = TypeVar("V", int, str, bool, tuple[str, ...])
"""A value of a key."""


class GroupOverrides(Protocol):
    """Configuration of single groups (GROUP resources)."""

    def value(self, group_id: str, name: str, default: V) -> V:
        """The group's own value of a key, `default` without one."""


class NoOverrides:
    """Overrides without any group of its own configuration."""

    def value(self, group_id: str, name: str, default: V) -> V:  # noqa: ARG002
        """Return `default`."""
        return default


NO_OVERRIDES = NoOverrides()


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Attribute for attribute a key `group.consumer.…`; the defaults are Apache's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    assignment_interval_ms: int = 1_000
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the default."""
    pattern_refresh_interval_ms: int = 600_000
    """group.consumer.regex.refresh.interval.ms"""
    pattern_max_count: int = 100
    """group.consumer.regex.max.count"""
    pattern_max_length: int = 1_024
    """group.consumer.regex.max.length"""
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """group.consumer.migration.policy"""
    classic_max_size: int = 2**31 - 1
    """group.max.size: that of a group which becomes a classic one"""
    overrides: GroupOverrides = NO_OVERRIDES

    def session_timeout_of(self, group_id: str) -> int:
        """consumer.session.timeout.ms of the group."""
        return self.overrides.value(
            group_id, "consumer.session.timeout.ms", self.session_timeout_ms
        )

    def heartbeat_interval_of(self, group_id: str) -> int:
        """consumer.heartbeat.interval.ms of the group."""
        return self.overrides.value(
            group_id, "consumer.heartbeat.interval.ms", self.heartbeat_interval_ms
        )

    def assignment_interval_of(self, group_id: str) -> int:
        """consumer.assignment.interval.ms of the group."""
        return self.overrides.value(
            group_id, "consumer.assignment.interval.ms", self.assignment_interval_ms
        )
