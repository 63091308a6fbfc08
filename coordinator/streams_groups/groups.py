"""The streams groups of a shard, and the replay of their records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator.modern_groups.epochs import NO_EPOCH
from coordinator.modern_groups.group_table import (
    GroupTable,
    Replay,
    replay_epoch,
    replay_target_epoch,
)
from coordinator.streams_groups.group import StreamsGroup
from coordinator.streams_groups.member import (
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
    from protocol.messages.streams_group_records import (
        StreamsGroupCurrentMemberAssignmentValue,
        StreamsGroupMemberMetadataValue,
        StreamsGroupMetadataValue,
        StreamsGroupTargetAssignmentMemberValue,
        StreamsGroupTopologyValue,
    )


StreamsGroups = GroupTable[StreamsGroup]
"""Groups by id."""


def _replay_epoch(
    group: StreamsGroup, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> None:
    replay_epoch(group, key, value)
    assert value is not None, "GroupTable removes the group"
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


REPLAY = Replay(
    StreamsGroupMetadataKey,
    {
        StreamsGroupMetadataKey: _replay_epoch,
        StreamsGroupTopologyKey: _replay_topology,
        StreamsGroupMemberMetadataKey: _replay_member,
        StreamsGroupTargetAssignmentMetadataKey: replay_target_epoch,
        StreamsGroupTargetAssignmentMemberKey: _replay_target,
        StreamsGroupCurrentMemberAssignmentKey: _replay_current,
    },
)
