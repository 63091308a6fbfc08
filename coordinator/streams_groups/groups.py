"""The streams groups of a shard, and the replay of their records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.group_table import GroupTable, Replay
from coordinator.streams_groups.group import FIRST_EPOCH, StreamsGroup
from coordinator.streams_groups.member import (
    NO_EPOCH,
    Endpoint,
    MemberState,
    StreamsMember,
    current_of,
)
from coordinator.streams_groups.tasks import OWNS_NOTHING, Tasks, task_set
from coordinator.streams_groups.topology import Topology
from protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.streams_group_records import (
        StreamsGroupCurrentMemberAssignmentValue,
        StreamsGroupMemberMetadataValue,
        StreamsGroupMetadataValue,
        StreamsGroupTargetAssignmentMemberValue,
        StreamsGroupTargetAssignmentMetadataValue,
        StreamsGroupTopologyValue,
    )


class StreamsGroups(GroupTable[StreamsGroup]):
    """Groups by id."""

    def __init__(
        self, created: Callable[[str], None], removed: Callable[[StreamsGroup], None]
    ) -> None:
        """`created` and `removed` hear of a group's first record, and of its last."""
        super().__init__(StreamsGroup, _REPLAY, created, removed)


def _replay_epoch(
    group: StreamsGroup, _: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> None:
    assert value is not None, "GroupTable removes the group"
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    configs = value.last_assignment_configs or ()
    group.assignment_configs = {each.key: each.value for each in configs}


def _replay_topology(
    group: StreamsGroup, _: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None
) -> None:
    group.topology = None if value is None else Topology(value)


def _replay_member(
    group: StreamsGroup,
    key: StreamsGroupMemberMetadataKey,
    value: StreamsGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    member = group.members.get(key.member_id) or StreamsMember(key.member_id)
    endpoint = value.user_endpoint
    group.put_member(
        replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            tags={each.key: each.value for each in value.client_tags},
        )
    )


def _replay_target_epoch(
    group: StreamsGroup,
    _: StreamsGroupTargetAssignmentMetadataKey,
    value: StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _replay_target(
    group: StreamsGroup,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
        return
    group.targets[key.member_id] = Tasks(
        task_set(value.active_tasks), task_set(value.standby_tasks), task_set(value.warmup_tasks)
    )


def _replay_current(
    group: StreamsGroup,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        changed: dict[str, Any] = current_of(value)
        group.put_member(replace(member or StreamsMember(key.member_id), **changed))
    elif member is not None:
        group.put_member(
            replace(
                member,
                member_epoch=NO_EPOCH,
                previous_member_epoch=NO_EPOCH,
                state=MemberState.STABLE,
                assigned=OWNS_NOTHING,
                revoking=OWNS_NOTHING,
            )
        )


_REPLAY = Replay(
    StreamsGroupMetadataKey,
    {
        StreamsGroupMetadataKey: _replay_epoch,
        StreamsGroupTopologyKey: _replay_topology,
        StreamsGroupMemberMetadataKey: _replay_member,
        StreamsGroupTargetAssignmentMetadataKey: _replay_target_epoch,
        StreamsGroupTargetAssignmentMemberKey: _replay_target,
        StreamsGroupCurrentMemberAssignmentKey: _replay_current,
    },
)
