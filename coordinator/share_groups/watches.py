"""A shard's unstored state of share groups, besides sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from coordinator.modern_groups.watches import NEVER_MS, Watch, Watches

if TYPE_CHECKING:
    from uuid import UUID

AsOf = tuple[int, int]
"""A revision of the topics, and the number of changes of the group."""
UNKNOWN: Final[AsOf] = (-1, -1)


@dataclass(slots=True)
class ShareWatch(Watch):
    """Unstored state of one group."""

    checked_revision: int = -1
    """The revision of the topics as of which the group's epoch is right."""
    checked_epoch: int = 0
    is_hashing: bool = False
    is_assigning: bool = False
    covered_as_of: AsOf = UNKNOWN
    """Revisions as of which all initialised partitions were assigned."""
    initialised_as_of: AsOf = UNKNOWN
    """Revisions as of which all subscribed partitions were initialised, or initialising until
    `retry_ms`."""
    retry_ms: int = NEVER_MS
    begun_ms: dict[UUID, int] = field(default_factory=dict)
    """Last start of a topic's initialisation, by the timers' clock."""


ShareWatches = Watches[ShareWatch]
