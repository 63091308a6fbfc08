"""The data of the active controller: brokers, topics, assignments, leaders, phases.

Filled from the store when the controller is elected, discarded when it resigns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from controller.partitions.states import PartitionPhase, ReplicaPhase
    from controller.znodes import BrokerRegistration, PartitionState, Replicas


class TopicPartition(NamedTuple):
    """One partition."""

    topic: str
    partition: int


class Replica(NamedTuple):
    """One copy of a partition."""

    at: TopicPartition
    broker_id: int


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A registered broker; its epoch is the transaction that registered it."""

    registration: BrokerRegistration
    epoch: int


@dataclass(frozen=True, slots=True)
class Term:
    """One controller's term."""

    epoch: int
    epoch_version: int
    """Version of `/controller_epoch`; every write is conditional on it."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's state as stored, with the version of its node (the partition epoch)."""

    state: PartitionState
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress: all replicas, and those being added and removed."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()

    @property
    def target(self) -> Replicas:
        """The replicas after it."""
        return tuple(one for one in self.replicas if one not in self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas before it."""
        return tuple(one for one in self.replicas if one not in self.adding)


@dataclass(slots=True)
class ControllerContext:
    """The controller's working copy of the store."""

    broker_id: int
    term: Term
    live_brokers: dict[int, LiveBroker] = field(default_factory=dict)
    leaving: set[int] = field(default_factory=set)
    """Live brokers in controlled shutdown."""
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    assignments: dict[str, dict[int, Replicas]] = field(default_factory=dict)
    leadership: dict[TopicPartition, Leadership] = field(default_factory=dict)
    reassigning: dict[TopicPartition, Reassignment] = field(default_factory=dict)
    partition_phases: dict[TopicPartition, PartitionPhase] = field(default_factory=dict)
    replica_phases: dict[Replica, ReplicaPhase] = field(default_factory=dict)
    failed_replicas: set[Replica] = field(default_factory=set)
    """Replicas on failed disks of live brokers."""
    deleting: set[str] = field(default_factory=set)
    """Topics queued for deletion."""
    blocked_deletions: set[str] = field(default_factory=set)
    """Topics queued for deletion that wait for a replica to return."""

    def partitions(self, topics: Iterable[str] | None = None) -> Iterator[TopicPartition]:
        """All partitions, or those of some topics."""
        for topic in self.assignments if topics is None else topics:
            for partition in self.assignments.get(topic, ()):
                yield TopicPartition(topic, partition)

    def replicas_of(self, at: TopicPartition) -> Replicas:
        """Assignment of one partition, preferred leader first."""
        return self.assignments.get(at.topic, {}).get(at.partition, ())

    def replicas(self, partitions: Iterable[TopicPartition]) -> Iterator[Replica]:
        """All copies of some partitions."""
        for at in partitions:
            for broker_id in self.replicas_of(at):
                yield Replica(at, broker_id)

    def usable_brokers(self, at: TopicPartition) -> set[int]:
        """Its live brokers whose log directory has not failed."""
        usable = {one for one in self.replicas_of(at) if one in self.live_brokers}
        if self.failed_replicas:
            usable = {one for one in usable if Replica(at, one) not in self.failed_replicas}
        return usable

    def topic_id(self, topic: str) -> UUID:
        """The topic's id, ZERO_UUID for one made before topics had ids."""
        return self.topic_ids.get(topic, ZERO_UUID)

    def forget_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions, and topics that are left without any."""
        for at in partitions:
            self.forget_partition(at)
            if not self.assignments[at.topic]:
                self.forget(at.topic)

    def forget_partition(self, at: TopicPartition) -> None:
        """Drop a partition."""
        for broker_id in self.replicas_of(at):
            self.replica_phases.pop(Replica(at, broker_id), None)
            self.failed_replicas.discard(Replica(at, broker_id))
        self.partition_phases.pop(at, None)
        self.leadership.pop(at, None)
        self.reassigning.pop(at, None)
        self.assignments[at.topic].pop(at.partition, None)

    def forget(self, topic: str) -> None:
        """Drop a topic."""
        for at in list(self.partitions([topic])):
            self.forget_partition(at)
        self.assignments.pop(topic, None)
        self.topic_ids.pop(topic, None)
        self.deleting.discard(topic)
        self.blocked_deletions.discard(topic)
