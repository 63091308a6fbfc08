"""States of partitions and of replicas, and the transitions between them. Tables only.

A partition is NEW when it has an assignment but no leader yet, ONLINE with a leader, OFFLINE when
its leader died. A replica is deleted by way of OFFLINE and DELETION_STARTED; it becomes
DELETION_INELIGIBLE if its broker fails in between, and retries from OFFLINE.
"""

from __future__ import annotations

from enum import Enum


class PartitionPhase(Enum):
    """The states of a partition."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaPhase(Enum):
    """The states of one replica of a partition."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


PARTITION_SOURCES: dict[PartitionPhase, frozenset[PartitionPhase]] = {
    PartitionPhase.NEW: frozenset({PartitionPhase.NON_EXISTENT}),
    PartitionPhase.ONLINE: frozenset(
        {PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE}
    ),
    PartitionPhase.OFFLINE: frozenset(
        {PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE}
    ),
    PartitionPhase.NON_EXISTENT: frozenset({PartitionPhase.OFFLINE}),
}
"""Phases from which a partition may enter each phase."""

REPLICA_SOURCES: dict[ReplicaPhase, frozenset[ReplicaPhase]] = {
    ReplicaPhase.NEW: frozenset({ReplicaPhase.NON_EXISTENT}),
    ReplicaPhase.ONLINE: frozenset(
        {
            ReplicaPhase.NEW,
            ReplicaPhase.ONLINE,
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_INELIGIBLE,
        }
    ),
    ReplicaPhase.OFFLINE: frozenset(
        {
            ReplicaPhase.NEW,
            ReplicaPhase.ONLINE,
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_INELIGIBLE,
        }
    ),
    ReplicaPhase.DELETION_STARTED: frozenset({ReplicaPhase.OFFLINE}),
    ReplicaPhase.DELETION_SUCCESSFUL: frozenset({ReplicaPhase.DELETION_STARTED}),
    ReplicaPhase.DELETION_INELIGIBLE: frozenset(
        {ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_STARTED}
    ),
    ReplicaPhase.NON_EXISTENT: frozenset({ReplicaPhase.DELETION_SUCCESSFUL}),
}
"""Phases from which a replica may enter each phase."""
