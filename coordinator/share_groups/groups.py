"""The share groups of a shard, and the replay of their records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.group_table import GroupTable, Replay
from coordinator.share_groups.group import (
    FIRST_EPOCH,
    NO_STATES,
    PartitionStates,
    ShareGroup,
    TopicStates,
)
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
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from protocol.messages.share_group_records import (
        ShareGroupCurrentMemberAssignmentValue,
        ShareGroupMemberMetadataValue,
        ShareGroupMetadataValue,
        ShareGroupStatePartitionMetadataTopicPartitionsInfo,
        ShareGroupStatePartitionMetadataValue,
        ShareGroupTargetAssignmentMemberValue,
        ShareGroupTargetAssignmentMetadataValue,
    )


class ShareGroups(GroupTable[ShareGroup]):
    """Groups by id."""

    def __init__(
        self, created: Callable[[str], None], removed: Callable[[ShareGroup], None]
    ) -> None:
        """`created` and `removed` hear of a group's first record, and of its last."""
        super().__init__(ShareGroup, _REPLAY, created, removed)


def _replay_epoch(
    group: ShareGroup, _: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None
) -> None:
    assert value is not None, "GroupTable removes the group"
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


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


def _replay_target_epoch(
    group: ShareGroup,
    _: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _replay_target(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    target = None
    if value is not None:
        target = {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}
    group.put_target(key.member_id, target)


def _replay_current(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        assigned = {each.topic_id: frozenset(each.partitions) for each in value.assigned_partitions}
        group.put_member(
            replace(
                member or ShareMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                assigned=assigned,
            )
        )
    elif member is not None:
        group.put_member(replace(member, member_epoch=-1, previous_member_epoch=-1, assigned={}))


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
    stored: Iterable[ShareGroupStatePartitionMetadataTopicPartitionsInfo],
) -> dict[UUID, TopicStates]:
    return {
        each.topic_id: TopicStates(each.topic_name, frozenset(each.partitions)) for each in stored
    }


_REPLAY = Replay(
    ShareGroupMetadataKey,
    {
        ShareGroupMetadataKey: _replay_epoch,
        ShareGroupMemberMetadataKey: _replay_member,
        ShareGroupTargetAssignmentMetadataKey: _replay_target_epoch,
        ShareGroupTargetAssignmentMemberKey: _replay_target,
        ShareGroupCurrentMemberAssignmentKey: _replay_current,
        ShareGroupStatePartitionMetadataKey: _replay_states,
    },
)
