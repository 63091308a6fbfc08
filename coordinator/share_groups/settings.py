"""The limits that a broker's configuration, and that of single groups, set for share groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.consumer_groups.settings import NO_OVERRIDES

if TYPE_CHECKING:
    from coordinator.consumer_groups.settings import GroupOverrides


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Attribute for attribute a key `group.share.…`; the defaults are Apache's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 200
    assignment_interval_ms: int = 1_000
    initialize_retry_interval_ms: int = 30_000
    overrides: GroupOverrides = NO_OVERRIDES

    def session_timeout_of(self, group_id: str) -> int:
        """share.session.timeout.ms of the group."""
        return self.overrides.value(group_id, "share.session.timeout.ms", self.session_timeout_ms)

    def heartbeat_interval_of(self, group_id: str) -> int:
        """share.heartbeat.interval.ms of the group."""
        return self.overrides.value(
            group_id, "share.heartbeat.interval.ms", self.heartbeat_interval_ms
        )

    def assignment_interval_of(self, group_id: str) -> int:
        """share.assignment.interval.ms of the group."""
        return self.overrides.value(
            group_id, "share.assignment.interval.ms", self.assignment_interval_ms
        )
