"""The records of a share group, as Apache Kafka 4.3 writes them.

    key type 10   a member and its subscription
             11   the group's epoch, and the hash of the topics it subscribes to
             12   the epoch of the target assignment, and when it was computed
             13   a member's part of the target assignment
             14   a member's current assignment
             15   initialised, initialising and deleting partitions

Where a record holds a set, partitions are in ascending order and topics in no particular one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator.modern_groups.assignments import topic_partitions
from coordinator.modern_groups.records import RecordClasses
from coordinator.records import OffsetsRecord
from coordinator.share_groups.member import STABLE
from protocol.messages.consumer_groups import NamedTopicPartitions
from protocol.messages.share_group_records import (
    DeletingTopic,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from coordinator.modern_groups.assignments import Target
    from coordinator.share_groups.group import Initialised, PartitionStates, ShareGroup
    from coordinator.share_groups.member import ShareMember


_CLASSES: Final = RecordClasses(
    ShareGroupMemberMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
target_epoch_record: Final = _CLASSES.target_epoch_record
member_tombstones: Final = _CLASSES.member_tombstones


def member_record(group_id: str, member: ShareMember) -> OffsetsRecord:
    """Build the record of a member's subscription."""
    return OffsetsRecord(
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> OffsetsRecord:
    """Store the group's epoch."""
    return OffsetsRecord(
        ShareGroupMetadataKey(group_id=group_id),
        ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(group_id: str, member_id: str, target: Target) -> OffsetsRecord:
    """Store a member's part of the target assignment."""
    return OffsetsRecord(
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberValue(topic_partitions=topic_partitions(target)),
    )


def current_record(group_id: str, member: ShareMember) -> OffsetsRecord:
    """Build the record of a member's current assignment."""
    return OffsetsRecord(
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=STABLE,
            assigned_partitions=topic_partitions(member.assigned),
        ),
    )


def states_record(group_id: str, states: PartitionStates) -> OffsetsRecord:
    """Store which partitions have state."""
    return OffsetsRecord(
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=_stored(states.initialising),
            initialized_topics=_stored(states.initialised),
            deleting_topics=[
                DeletingTopic(topic_id=topic_id, topic_name=name)
                for topic_id, name in states.deleting.items()
            ],
        ),
    )


def _stored(topics: Initialised) -> list[NamedTopicPartitions]:
    return [
        NamedTopicPartitions(
            topic_id=topic_id, topic_name=each.name, partitions=sorted(each.partitions)
        )
        for topic_id, each in topics.items()
    ]


def group_tombstones(group: ShareGroup) -> list[OffsetsRecord]:
    """Forget a group without members."""
    group_id = group.group_id
    return [
        OffsetsRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        OffsetsRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        OffsetsRecord(ShareGroupMetadataKey(group_id=group_id), None),
    ]
