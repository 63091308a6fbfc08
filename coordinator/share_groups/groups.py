"""The share groups of a shard, and the replay of their records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.modern_groups.assignments import target_of
from coordinator.modern_groups.epochs import NO_EPOCH
from coordinator.modern_groups.group_table import (
    GroupTable,
    Replay,
    replay_epoch,
    replay_target_epoch,
)
from coordinator.share_groups.group import NO_STATES, PartitionStates, ShareGroup, TopicStates
from coordinator.share_groups.member import ShareMember
from protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from protocol.messages.consumer_groups import NamedTopicPartitions
    from protocol.messages.share_group_records import (
        ShareGroupCurrentMemberAssignmentValue,
        ShareGroupMemberMetadataValue,
        ShareGroupStatePartitionMetadataValue,
        ShareGroupTargetAssignmentMemberValue,
    )


ShareGroups = GroupTable[ShareGroup]
"""Groups by id."""


def _replay_member(
    group: ShareGroup,
    key: ShareGroupMemberMetadataKey,
    value: ShareGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    member = group.members.get(key.member_id) or ShareMember(key.member_id)
    group.put_member(
        replace(
            member,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
        )
    )


def _replay_target(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    group.put_target(key.member_id, None if value is None else target_of(value.topic_partitions))


def _replay_current(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(
            replace(
                member or ShareMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                assigned=target_of(value.assigned_partitions),
            )
        )
    elif member is not None:
        group.put_member(
            replace(member, member_epoch=NO_EPOCH, previous_member_epoch=NO_EPOCH, assigned={})
        )


def _replay_states(
    group: ShareGroup,
    _: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
) -> None:
    states = NO_STATES
    if value is not None:
        states = PartitionStates(
            _topics(value.initializing_topics),
            _topics(value.initialized_topics),
            {each.topic_id: each.topic_name for each in value.deleting_topics},
        )
    group.put_states(states)


def _topics(
    stored: Iterable[NamedTopicPartitions],
) -> dict[UUID, TopicStates]:
    return {
        each.topic_id: TopicStates(each.topic_name, frozenset(each.partitions)) for each in stored
    }


REPLAY = Replay(
    ShareGroupMetadataKey,
    {
        ShareGroupMetadataKey: replay_epoch,
        ShareGroupMemberMetadataKey: _replay_member,
        ShareGroupTargetAssignmentMetadataKey: replay_target_epoch,
        ShareGroupTargetAssignmentMemberKey: _replay_target,
        ShareGroupCurrentMemberAssignmentKey: _replay_current,
        ShareGroupStatePartitionMetadataKey: _replay_states,
    },
)
