"""The consumer groups of a shard, and the replay of their records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.consumer_groups.group import ConsumerGroup
from coordinator.consumer_groups.member import ConsumerMember, MemberState, current_of
from coordinator.consumer_groups.records import ResolvedPattern
from coordinator.modern_groups.assignments import target_of
from coordinator.modern_groups.epochs import NO_EPOCH
from coordinator.modern_groups.group_table import (
    GroupTable,
    Replay,
    replay_epoch,
    replay_target_epoch,
)
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
    from protocol.messages.consumer_group_records import (
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
        ConsumerGroupPartitionMetadataValue,
        ConsumerGroupRegularExpressionValue,
        ConsumerGroupTargetAssignmentMemberValue,
    )


ConsumerGroups = GroupTable[ConsumerGroup]
"""Groups by id."""


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


def _replay_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = target_of(value.topic_partitions)


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


REPLAY = Replay(
    ConsumerGroupMetadataKey,
    {
        ConsumerGroupMetadataKey: replay_epoch,
        ConsumerGroupPartitionMetadataKey: _replay_topics,
        ConsumerGroupMemberMetadataKey: _replay_member,
        ConsumerGroupTargetAssignmentMetadataKey: replay_target_epoch,
        ConsumerGroupTargetAssignmentMemberKey: _replay_target,
        ConsumerGroupCurrentMemberAssignmentKey: _replay_current,
        ConsumerGroupRegularExpressionKey: _replay_pattern,
    },
)
