"""One partition in the image: its whole state, and how records change it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from controller.image.errors import ReplayError
from protocol.metadata_log.topic_records import PartitionRecord
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from protocol.metadata_log.topic_records import PartitionChangeRecord

Item = TypeVar("Item")

LEADER_UNCHANGED: Final = -2
RECOVERY_UNCHANGED: Final = -1
MIGRATING: Final = ZERO_UUID
"""Directory id of a replica whose log directory was never recorded (KIP-858)."""

DIRECTORIES_VERSION: Final = 1
ELR_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Partition:
    """The state of a partition (`PartitionRegistration`)."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """-1 if there is none."""
    leader_epoch: int
    partition_epoch: int
    """Raised by each change of the partition."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    """0 recovered, 1 recovering from an unclean election (KIP-704)."""
    directories: tuple[UUID, ...] = ()
    """Log directory of each replica, in the order of `replicas`; empty if none is recorded."""
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Partition:
        """Make the partition that a record describes; raises ReplayError."""
        return cls(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            directories=_directories(record.directories, len(record.replicas)),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def directory_of(self, broker_id: int) -> UUID | None:
        """Log directory of a broker's replica; None if the broker has none."""
        if broker_id not in self.replicas:
            return None
        return self.directories[self.replicas.index(broker_id)] if self.directories else MIGRATING

    def changed_by(self, record: PartitionChangeRecord) -> Partition:
        """The partition after a change; raises ReplayError.

        A change that names a leader raises the leader epoch, even if it names the same one.
        """
        names_leader = record.leader != LEADER_UNCHANGED
        keeps_recovery = record.leader_recovery_state == RECOVERY_UNCHANGED
        replicas = _or(record.replicas, self.replicas)
        directories = _or(record.directories, self.directories)
        return Partition(
            replicas=replicas,
            isr=_or(record.isr, self.isr),
            leader=record.leader if names_leader else self.leader,
            leader_epoch=self.leader_epoch + names_leader,
            partition_epoch=self.partition_epoch + 1,
            removing_replicas=_or(record.removing_replicas, self.removing_replicas),
            adding_replicas=_or(record.adding_replicas, self.adding_replicas),
            leader_recovery_state=(
                self.leader_recovery_state if keeps_recovery else record.leader_recovery_state
            ),
            directories=_directories(directories, len(replicas)),
            eligible_leader_replicas=_or(
                record.eligible_leader_replicas, self.eligible_leader_replicas
            ),
            last_known_elr=_or(record.last_known_elr, self.last_known_elr),
        )

    def without_elr(self) -> Partition:
        """The partition after ClearElrRecord: itself if it has no eligible leader replicas."""
        if not (self.eligible_leader_replicas or self.last_known_elr):
            return self
        return replace(
            self,
            eligible_leader_replicas=(),
            last_known_elr=(),
            partition_epoch=self.partition_epoch + 1,
        )

    def to_record(self, topic_id: UUID, partition_id: int, version: int) -> PartitionRecord:
        """The record that has this state, for a snapshot."""
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=[],
        )
        if version >= DIRECTORIES_VERSION:
            record.directories = list(self.directories or [MIGRATING] * len(self.replicas))
        if version >= ELR_VERSION:
            record.eligible_leader_replicas = list(self.eligible_leader_replicas) or None
            record.last_known_elr = list(self.last_known_elr) or None
        return record


def _or(changed: Sequence[Item] | None, unchanged: tuple[Item, ...]) -> tuple[Item, ...]:
    return unchanged if changed is None else tuple(changed)


def _directories(directories: Sequence[UUID], replica_count: int) -> tuple[UUID, ...]:
    if all(directory == MIGRATING for directory in directories):
        return ()
    if len(directories) != replica_count:
        raise ReplayError(f"{len(directories)} directories for {replica_count} replicas")
    return tuple(directories)
