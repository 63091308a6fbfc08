"""One member of a consumer group, as stored: its subscription and its current assignment."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from coordinator.modern_groups.epochs import JOINING_EPOCH, NO_EPOCH
from protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentTopicPartitions as StoredPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.consumer_group_records import (
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
    )

Owned = Mapping[UUID, Mapping[int, int]]
"""Topic id → partition → the member epoch in which the partition was given to the member."""


class MemberState(enum.IntEnum):
    """Progress of a member with its next assignment. The values are stored."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to revoke partitions first."""
    UNRELEASED_PARTITIONS = 2
    """It has all of its next partitions that are free; others still own the rest."""
    UNKNOWN = 127
    """Stored by a later release that has more states."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:  # noqa: ARG003 - as enum calls it
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. Changed only by replacing it."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """Topics it subscribes to by name."""
    pattern: str | None = ""
    """Regular expression it subscribes to; empty or None for none."""
    assignor: str | None = None
    """The server-side assignor it prefers."""
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    """Partitions it has to revoke, and may still consume."""
    classic: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = None
    """Set for a member that speaks the classic protocol; Apache Kafka stores such."""

    @property
    def is_classic(self) -> bool:
        """True if it speaks the classic protocol."""
        return self.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has exactly the assignment of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch in which it got the partition; None if it does not own it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def stored_partitions(owned: Owned) -> list[StoredPartitions]:
    """The form of a record."""
    stored = []
    for topic_id, partitions in owned.items():
        indexes = sorted(partitions)
        epochs = [partitions[index] for index in indexes]
        stored.append(
            StoredPartitions(topic_id=topic_id, partitions=indexes, assignment_epochs=epochs)
        )
    return stored


def owned_partitions(stored: Iterable[StoredPartitions], default_epoch: int) -> Owned:
    """Inverse of `stored_partitions`; `default_epoch` is for records that have no epochs."""
    owned: dict[UUID, Mapping[int, int]] = {}
    for topic in stored:
        epochs = topic.assignment_epochs
        if not epochs or len(epochs) != len(topic.partitions):
            epochs = [max(default_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def current_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> dict[str, object]:
    """The fields of a member that a record of its current assignment sets."""
    return {
        "member_epoch": value.member_epoch,
        "previous_member_epoch": value.previous_member_epoch,
        "state": MemberState(value.state),
        "assigned": owned_partitions(value.assigned_partitions, value.member_epoch),
        "revoking": owned_partitions(value.partitions_pending_revocation, value.member_epoch),
    }
