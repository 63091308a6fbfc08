"""The consumer groups of a shard, and the replay of their records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.consumer_groups.group import FIRST_EPOCH, ConsumerGroup
from coordinator.consumer_groups.member import NO_EPOCH, ConsumerMember, MemberState, current_of
from coordinator.consumer_groups.records import ResolvedPattern
from coordinator.group_table import GroupTable, Replay
from protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.consumer_group_records import (
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
        ConsumerGroupMetadataValue,
        ConsumerGroupPartitionMetadataValue,
        ConsumerGroupRegularExpressionValue,
        ConsumerGroupTargetAssignmentMemberValue,
        ConsumerGroupTargetAssignmentMetadataValue,
    )


class ConsumerGroups(GroupTable[ConsumerGroup]):
    """Groups by id."""

    def __init__(
        self, created: Callable[[str], None], removed: Callable[[ConsumerGroup], None]
    ) -> None:
        """`created` and `removed` hear of a group's first record, and of its last."""
        super().__init__(ConsumerGroup, _REPLAY, created, removed)


def _replay_epoch(
    group: ConsumerGroup, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    assert value is not None, "GroupTable removes the group"
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _replay_topics(
    group: ConsumerGroup,
    _: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_topics_record = value is not None


def _replay_member(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.put_member(
        replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            pattern=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )
    )


def _replay_target_epoch(
    group: ConsumerGroup,
    _: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _replay_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
        return
    group.targets[key.member_id] = {
        topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
    }


def _replay_current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        changed: dict[str, Any] = current_of(value)
        group.put_member(replace(member or ConsumerMember(key.member_id), **changed))
    elif member is not None:
        group.put_member(
            replace(
                member,
                member_epoch=NO_EPOCH,
                previous_member_epoch=NO_EPOCH,
                state=MemberState.STABLE,
                assigned={},
                revoking={},
            )
        )


def _replay_pattern(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = None
    if value is not None:
        resolved = ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)
    group.put_pattern(key.regular_expression, resolved)


_REPLAY = Replay(
    ConsumerGroupMetadataKey,
    {
        ConsumerGroupMetadataKey: _replay_epoch,
        ConsumerGroupPartitionMetadataKey: _replay_topics,
        ConsumerGroupMemberMetadataKey: _replay_member,
        ConsumerGroupTargetAssignmentMetadataKey: _replay_target_epoch,
        ConsumerGroupTargetAssignmentMemberKey: _replay_target,
        ConsumerGroupCurrentMemberAssignmentKey: _replay_current,
        ConsumerGroupRegularExpressionKey: _replay_pattern,
    },
)
