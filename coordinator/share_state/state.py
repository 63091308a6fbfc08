"""Names of share-partitions, and the stored state of one of them."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.uuids import from_base64, to_base64

if TYPE_CHECKING:
    from uuid import UUID

NO_START_OFFSET: Final = -1
"""In a state: nothing was consumed yet. In a change: unchanged."""
NO_EPOCH: Final = -1
"""In a stored update: unchanged."""
NO_COUNT: Final = -1
"""The complete deliveries have not been counted."""
_COORDINATOR_KEY: Final = re.compile(r"(.+):([^:]*):([+-]?[0-9]{1,10})", re.DOTALL)


class DeliveryState(enum.IntEnum):
    """Stored state of records; acquired ones are stored in their state before that."""

    AVAILABLE = 0
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class SharePartition(NamedTuple):
    """A partition as one share group consumes it."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """Key for FindCoordinator, which is also hashed to a partition of the log."""
        return f"{self.group_id}:{to_base64(self.topic_id)}:{self.partition}"


def is_coordinator_key(text: str) -> bool:
    """Return whether a key names a share-partition; a group id may have colons, not be empty."""
    found = _COORDINATOR_KEY.fullmatch(text)
    if found is None or not found[1].strip():
        return False
    try:
        from_base64(found[2])
    except ValueError:
        return False
    return True


class StateBatch(NamedTuple):
    """Records from the first to the last offset that are in one state."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class StateChange(NamedTuple):
    """Change of a share-partition, as stored by the leader of its partition."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    """NO_START_OFFSET: unchanged."""
    delivery_complete_count: int
    """Records from the start offset on that will not be delivered again."""
    batches: tuple[StateBatch, ...] = ()
    """Changed records; others stay as they are."""


class StoredState(NamedTuple):
    """State that the leader of a partition reads before it serves a share group."""

    state_epoch: int
    start_offset: int
    """NO_START_OFFSET: the leader chooses by `share.auto.offset.reset`."""
    batches: tuple[StateBatch, ...]
    """In ascending order, without overlaps; records in none of them are available."""


class ShareState(NamedTuple):
    """All that is stored of a share-partition."""

    snapshot_epoch: int
    """Grows with every snapshot."""
    state_epoch: int
    """Epoch of the state, the group's epoch at its initialisation; grows with each."""
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int
    """Later than `created_ms` if the state was written again so that older records may go."""


class StateSummary(NamedTuple):
    """Start offset and progress of a share-partition, for descriptions."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


NO_SUMMARY: Final = StateSummary(0, 0, NO_START_OFFSET, NO_COUNT)
"""Summary of a share-partition that has no state."""
