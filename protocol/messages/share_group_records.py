"""Keys and values of `__consumer_offsets`: share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, int8, int32, int64, string, uuid
from protocol.messages.consumer_groups import NamedTopicPartitions, TopicPartitions
from protocol.schema import Coded, Struct

if TYPE_CHECKING:
    from uuid import UUID


class DeletingTopic(Struct):
    """A topic whose state is being deleted."""

    topic_id: UUID = uuid()
    topic_name: str = string()


class ShareGroupCurrentMemberAssignmentKey(Coded, versions="0", flexible="none", key_type=14):
    """Names the current assignment of a share group member."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupCurrentMemberAssignmentValue(Coded, versions="0", flexible="0+"):
    """Holds the current assignment of a share group member."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupMemberMetadataKey(Coded, versions="0", flexible="none", key_type=10):
    """Names the metadata of a share group member."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the metadata of a share group member."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataKey(Coded, versions="0", flexible="none", key_type=11):
    """Names the epoch of a share group."""

    group_id: str = string()


class ShareGroupMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the epoch of a share group."""

    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupPartitionMetadataKey(Coded, versions="0", flexible="none", key_type=9):
    """Names the partitions that a share group subscribes to."""

    group_id: str = string()


class ShareGroupPartitionMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the partitions that a share group subscribes to."""

    initialized_topics: list[NamedTopicPartitions] = array(NamedTopicPartitions)
    deleting_topics: list[DeletingTopic] = array(DeletingTopic)


class ShareGroupStatePartitionMetadataKey(Coded, versions="0", flexible="none", key_type=15):
    """Names which partitions of a share group have state."""

    group_id: str = string()


class ShareGroupStatePartitionMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds which partitions of a share group have state."""

    initializing_topics: list[NamedTopicPartitions] = array(NamedTopicPartitions)
    initialized_topics: list[NamedTopicPartitions] = array(NamedTopicPartitions)
    deleting_topics: list[DeletingTopic] = array(DeletingTopic)


class ShareGroupTargetAssignmentMemberKey(Coded, versions="0", flexible="none", key_type=13):
    """Names the target assignment of a share group member."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupTargetAssignmentMemberValue(Coded, versions="0", flexible="0+"):
    """Holds the target assignment of a share group member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupTargetAssignmentMetadataKey(Coded, versions="0", flexible="none", key_type=12):
    """Names the epoch of the target assignment of a share group."""

    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the epoch of the target assignment of a share group."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(default=0, tag=0)
