"""What a shard remembers of share groups without storing it, besides sessions."""

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
    """What is remembered of one group."""

    checked_revision: int = -1
    """The revision of the topics as of which the group's epoch is right."""
    checked_epoch: int = 0
    is_hashing: bool = False
    is_assigning: bool = False
    covered_as_of: AsOf = UNKNOWN
    """When all that has state was assigned."""
    initialised_as_of: AsOf = UNKNOWN
    """When all that is subscribed to had state, or was about to have it until `retry_ms`."""
    retry_ms: int = NEVER_MS
    begun_ms: dict[UUID, int] = field(default_factory=dict)
    """When the partitions of a topic were last to be initialised, by the timers' clock."""


ShareWatches = Watches[ShareWatch]
