"""Keys and values of `__consumer_offsets`: groups of the new protocol (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import UNSET, array, blob, int8, int32, int64, string, struct, uuid
from protocol.messages.consumer_groups import TopicPartitions
from protocol.schema import Coded, Struct

if TYPE_CHECKING:
    from uuid import UUID


class ConsumerGroupCurrentMemberAssignmentKey(Coded, versions="0", flexible="none", key_type=8):
    """Names the current assignment of a consumer group member."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupCurrentMemberAssignmentTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, default=(), nullable="0+", tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Coded, versions="0", flexible="0+"):
    """Holds the current assignment of a consumer group member."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = array(
        ConsumerGroupCurrentMemberAssignmentTopicPartitions
    )
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions] = (
        array(ConsumerGroupCurrentMemberAssignmentTopicPartitions)
    )


class ConsumerGroupMemberMetadataKey(Coded, versions="0", flexible="none", key_type=5):
    """Names the metadata of a consumer group member."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupMemberMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the metadata of a consumer group member."""

    class ClassicMemberMetadata(Struct):
        """Metadata that a member of the classic protocol joined with."""

        class SupportedProtocol(Struct):
            """A strategy that it knows."""

            name: str = string()
            metadata: bytes = blob()

        session_timeout_ms: int = int32()
        supported_protocols: list[SupportedProtocol] = array(SupportedProtocol)

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, default=UNSET, nullable="0+", tag=0
    )
    """Set while the member speaks the classic protocol (migration); else null."""


class ConsumerGroupMetadataKey(Coded, versions="0", flexible="none", key_type=3):
    """Names the epoch of a group of the new protocol."""

    group_id: str = string()


class ConsumerGroupMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the epoch of a group of the new protocol."""

    epoch: int = int32()
    metadata_hash: int = int64(default=0, tag=0)


class ConsumerGroupPartitionMetadataKey(Coded, versions="0", flexible="none", key_type=4):
    """Names the partitions that a group of the new protocol subscribes to."""

    group_id: str = string()


class ConsumerGroupPartitionMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the partitions that a group of the new protocol subscribes to."""

    class Topic(Struct):
        """A topic and how many partitions it has."""

        class PartitionMetadata(Struct):
            """Racks of one partition's replicas."""

            partition: int = int32()
            racks: list[str] = array(string)

        topic_id: UUID = uuid()
        topic_name: str = string()
        num_partitions: int = int32()
        partition_metadata: list[PartitionMetadata] = array(PartitionMetadata)

    topics: list[Topic] = array(Topic)


class ConsumerGroupRegularExpressionKey(Coded, versions="0", flexible="none", key_type=16):
    """Names a regular expression that members subscribe with, as resolved."""

    group_id: str = string()
    regular_expression: str = string()


class ConsumerGroupRegularExpressionValue(Coded, versions="0", flexible="0+"):
    """Holds a regular expression that members subscribe with, as resolved."""

    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()


class ConsumerGroupTargetAssignmentMemberKey(Coded, versions="0", flexible="none", key_type=7):
    """Names the target assignment of a consumer group member."""

    group_id: str = string()
    member_id: str = string()


class ConsumerGroupTargetAssignmentMemberValue(Coded, versions="0", flexible="0+"):
    """Holds the target assignment of a consumer group member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupTargetAssignmentMetadataKey(Coded, versions="0", flexible="none", key_type=6):
    """Names the epoch of the target assignment of a group of the new protocol."""

    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(Coded, versions="0", flexible="0+"):
    """Holds the epoch of the target assignment of a group of the new protocol."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(default=0, tag=0)
