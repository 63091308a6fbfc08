"""Senders of heartbeats: a known member, a new one, or the next incarnation of a static one.

A static member that leaves temporarily (epoch -2) keeps its place and its tasks; the member that
joins with its instance id meanwhile takes both, and replaces its predecessor. The group only goes
to its next epoch if an input of the assignor has changed.

Source: KIP-1071, `GroupMetadataManager.getOrMaybeCreateStaticStreamsGroupMember`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from coordinator.modern_groups.checks import check_room, unknown_member
from coordinator.modern_groups.epochs import JOINING_EPOCH
from coordinator.modern_groups.static_members import check_instance, check_released
from coordinator.streams_groups.heartbeats.checks import check_epoch
from coordinator.streams_groups.member import Endpoint, StreamsMember
from coordinator.streams_groups.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from coordinator.streams_groups.target import Standing
from coordinator.streams_groups.tasks import SaidTasks

if TYPE_CHECKING:
    from coordinator.effects import Effects
    from coordinator.streams_groups.group import StreamsGroup
    from protocol.messages.streams_groups import StreamsGroupHeartbeatRequest


class HeartbeatCaller(NamedTuple):
    """The client of a heartbeat, from its connection."""

    client_id: str
    client_host: str
    api_version: int = 1


class Arrival(NamedTuple):
    """A member before its heartbeat, and the member it replaces."""

    member: StreamsMember
    replaced_id: str | None = None
    """The former member id of a static member that has a new one."""

    def standing(self, group: StreamsGroup, updated: StreamsMember) -> Standing:
        """Return the group after this heartbeat."""
        member_id, members, targets = updated.member_id, dict(group.members), group.targets
        if self.replaced_id is not None:
            del members[self.replaced_id]
            targets = {**targets, member_id: group.target_of(self.replaced_id)}
        members.pop(member_id, None)
        members[member_id] = updated
        return Standing(members, targets)


def arrive(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, limit: int, effects: Effects
) -> Arrival:
    """Find or make the member, of at most `limit`. Raises ApiError."""
    member_id, instance_id = request.member_id, request.instance_id
    joins = request.member_epoch == JOINING_EPOCH
    present = group.static_member(instance_id)
    member = group.members.get(member_id)
    if joins and present is None and member is None:
        check_room("streams", group.members, limit)
    if instance_id is not None and not joins:
        member = check_instance(present, member_id, instance_id)
    elif present is not None:
        assert instance_id is not None, "only they have a static member"
        check_released(present, member_id, instance_id)
        successor = _give_place(group, present, member_id, effects)
        is_other = present.member_id != member_id
        return Arrival(successor, present.member_id if is_other else None)
    elif member is None:
        if not joins:
            raise unknown_member(member_id, group.group_id)
        return Arrival(StreamsMember(member_id))
    said = SaidTasks(request.active_tasks, request.standby_tasks, request.warmup_tasks)
    check_epoch(member, request.member_epoch, said)
    return Arrival(member)


def _give_place(
    group: StreamsGroup, present: StreamsMember, member_id: str, effects: Effects
) -> StreamsMember:
    """Give the place of a static member to its next incarnation."""
    group_id, records = group.group_id, effects.records
    successor = replace(
        present, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=0
    )
    records += member_tombstones(group_id, present.member_id)
    records.append(member_record(group_id, successor))
    records.append(target_record(group_id, member_id, group.target_of(present.member_id)))
    records.append(current_record(group_id, successor))
    return successor


def must_assign(member: StreamsMember, updated: StreamsMember) -> bool:
    """Return whether a change of a member takes the group to its next epoch."""
    if updated.instance_id is None:
        return updated != member
    return (
        updated.topology_epoch != member.topology_epoch
        or updated.rack_id != member.rack_id
        or updated.tags != member.tags
        or updated.process_id != member.process_id
    )


def updated_member(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, caller: HeartbeatCaller
) -> StreamsMember:
    """Return the member with the fields of the request; null fields mean no change.

    Except for the endpoint of a joining member: without one it has none.
    """
    changes: dict[str, object] = {
        "client_id": caller.client_id,
        "client_host": caller.client_host,
    }
    if request.instance_id is not None:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.topology is not None:
        changes["topology_epoch"] = request.topology.epoch
    if request.process_id is not None:
        changes["process_id"] = request.process_id
    if request.client_tags is not None:
        changes["tags"] = {each.key: each.value for each in request.client_tags}
    endpoint = request.user_endpoint
    if endpoint is not None:
        changes["endpoint"] = Endpoint(endpoint.host, endpoint.port)
    elif request.member_epoch == JOINING_EPOCH:
        changes["endpoint"] = None
    if all(getattr(member, name) == value for name, value in changes.items()):
        return member
    return replace(member, **changes)  # type: ignore[arg-type]
