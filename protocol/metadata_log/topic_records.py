"""Records of `__cluster_metadata`: topics and partitions (KIP-631, KIP-858, KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, int8, int32, string, uuid
from protocol.schema import MetadataRecord

if TYPE_CHECKING:
    from uuid import UUID


class TopicRecord(MetadataRecord, record_type=2, versions="0", flexible="0+"):
    """A new topic."""

    name: str = string()
    topic_id: UUID = uuid()


class RemoveTopicRecord(MetadataRecord, record_type=9, versions="0", flexible="0+"):
    """The removal of a topic with its partitions and its configuration."""

    topic_id: UUID = uuid()


class PartitionRecord(MetadataRecord, record_type=3, versions="0-2", flexible="0+"):
    """The whole state of a partition."""

    partition_id: int = int32(default=-1)
    topic_id: UUID = uuid()
    replicas: list[int] = array(int32)
    """Broker ids in order of preference."""
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=-1)
    """-1 if there is none."""
    leader_recovery_state: int = int8(default=0, tag=0)
    """0 recovered, 1 recovering from an unclean election (KIP-704)."""
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[UUID] = array(uuid, "1+")
    """Log directory of each replica, in the order of `replicas`; empty if none is known."""
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", default=None, nullable="2+", tag=1
    )
    last_known_elr: list[int] | None = array(int32, "2+", default=None, nullable="2+", tag=2)


class PartitionChangeRecord(MetadataRecord, record_type=5, versions="0-2", flexible="0+"):
    """A change of a partition; null leaves a field as it is.

    Each change raises the partition epoch by one, and one that names a leader the leader epoch
    too, even if it is the same leader.
    """

    partition_id: int = int32(default=-1)
    topic_id: UUID = uuid()
    isr: list[int] | None = array(int32, default=None, nullable="0+", tag=0)
    leader: int = int32(default=-2, tag=1)
    """-1 if there is none any more, -2 leaves it as it is."""
    replicas: list[int] | None = array(int32, default=None, nullable="0+", tag=2)
    removing_replicas: list[int] | None = array(int32, default=None, nullable="0+", tag=3)
    adding_replicas: list[int] | None = array(int32, default=None, nullable="0+", tag=4)
    leader_recovery_state: int = int8(default=-1, tag=5)
    """-1 leaves it as it is."""
    directories: list[UUID] | None = array(uuid, "1+", default=None, nullable="1+", tag=8)
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", default=None, nullable="2+", tag=6
    )
    last_known_elr: list[int] | None = array(int32, "2+", default=None, nullable="2+", tag=7)


class ClearElrRecord(MetadataRecord, record_type=28, versions="0", flexible="0+"):
    """The removal of all eligible leader replicas of a topic, or of every topic (KIP-966)."""

    topic_name: str = string()
    """Empty for every topic."""
