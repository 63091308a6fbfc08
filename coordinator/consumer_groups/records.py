"""The records of a consumer group, as Apache Kafka 4.3 writes them.

    key type 3   the group's epoch, and the hash of the topics it subscribes to
             4   topics with their racks; not written since 4.1, deleted where it is found
             5   a member and its subscription
             6   the epoch of the target assignment, and when it was computed
             7   a member's part of the target assignment
             8   a member's current assignment
            16   a regular expression, and the topics that it matches

Where a record holds a set, partitions are in ascending order and topics in no particular one;
Apache's order is that of its hash tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.consumer_groups.member import stored_partitions
from coordinator.modern_groups.assignments import topic_partitions
from coordinator.modern_groups.records import RecordClasses
from coordinator.records import OffsetsRecord
from protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember
    from coordinator.modern_groups.assignments import Target


NOBODY_RENAMED: Final[Mapping[str, str]] = {}


_CLASSES: Final = RecordClasses(
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
target_epoch_record: Final = _CLASSES.target_epoch_record
member_tombstones: Final = _CLASSES.member_tombstones


class ResolvedPattern(NamedTuple):
    """The topics that a regular expression matched, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def member_record(group_id: str, member: ConsumerMember) -> OffsetsRecord:
    """Build the record of a member's subscription."""
    return OffsetsRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.pattern,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> OffsetsRecord:
    """Store the group's epoch."""
    return OffsetsRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_record(group_id: str, member_id: str, target: Target) -> OffsetsRecord:
    """Store a member's part of the target assignment."""
    return OffsetsRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topic_partitions(target)),
    )


def current_record(group_id: str, member: ConsumerMember) -> OffsetsRecord:
    """Build the record of a member's current assignment."""
    return OffsetsRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=stored_partitions(member.assigned),
            partitions_pending_revocation=stored_partitions(member.revoking),
        ),
    )


def pattern_record(group_id: str, pattern: str, resolved: ResolvedPattern) -> OffsetsRecord:
    """Store the topics that a regular expression matches."""
    return OffsetsRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        ),
    )


def pattern_tombstone(group_id: str, pattern: str) -> OffsetsRecord:
    """Forget a regular expression."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return OffsetsRecord(key, None)


def topics_tombstone(group_id: str) -> OffsetsRecord:
    """Build the tombstone of the topics that releases before 4.1 stored."""
    return OffsetsRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def group_tombstones(
    group: ConsumerGroup, renamed: Mapping[str, str] = NOBODY_RENAMED
) -> list[OffsetsRecord]:
    """Forget a group, of which some members have new ids meanwhile."""
    group_id = group.group_id
    ids = [renamed.get(member_id, member_id) for member_id in group.members]
    current = [
        OffsetsRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=id_), None
        )
        for id_ in ids
    ]
    targets = [
        OffsetsRecord(
            ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=id_), None
        )
        for id_ in ids
    ]
    members = [
        OffsetsRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=id_), None)
        for id_ in ids
    ]
    return [
        *current,
        *targets,
        OffsetsRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *members,
        *(pattern_tombstone(group_id, pattern) for pattern in group.resolved),
        topics_tombstone(group_id),
        OffsetsRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
