"""The next target assignment of a group: input of the assignor, and records of its result.

A group of some size is assigned within the heartbeat that finds its target out of date, as in
Apache Kafka; a larger one in steps, between which other requests are served, while its members keep
the former target. `modern_groups.target` says how that is stored.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.effects import Effects
from coordinator.modern_groups.assignments import in_both
from coordinator.modern_groups.target import (
    ASSIGNED_AT_ONCE,
    StoredTargets,
    TargetKind,
    finished,
    store_in_steps,
)
from coordinator.streams_groups.assignor.sticky import (
    MemberSpecification,
    Specification,
    assign,
)
from coordinator.streams_groups.records import target_epoch_record, target_record
from coordinator.streams_groups.settings import NUM_STANDBY_REPLICAS
from coordinator.streams_groups.tasks import NO_OFFSETS, NO_TASKS, Tasks

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from coordinator.effects import Steps
    from coordinator.streams_groups.assignor.sticky import Assignment
    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.groups import StreamsGroups
    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.topology import ConfiguredTopology


def is_small(group: StreamsGroup, topology: ConfiguredTopology) -> bool:
    """Return whether the group is small enough to be assigned within a heartbeat."""
    return len(group.members) + topology.task_count <= ASSIGNED_AT_ONCE


class Standing(NamedTuple):
    """Members of a group after a heartbeat, with their current targets."""

    members: Mapping[str, StreamsMember]
    targets: Mapping[str, Tasks]


def assign_now(
    group: StreamsGroup,
    standing: Standing,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
    effects: Effects,
) -> Assignment:
    """Append the records of the members' next parts, which are returned."""
    assignment = finished(_assign(group, standing, topology, configs))
    for member_id in standing.members:
        target = assignment.get(member_id, NO_TASKS)
        if target != standing.targets.get(member_id):
            effects.records.append(target_record(group.group_id, member_id, target))
    return assignment


def assign_later(
    groups: StreamsGroups, group_id: str, configs: Mapping[str, str], now_ms: int
) -> Steps[None]:
    """Assign in steps, and store the epoch, for the group as it is when they begin."""
    group = groups.find(group_id)
    if group is None:
        return
    try:
        topology = group.memory.configured
        if topology is None or group.epoch <= group.assignment_epoch:
            return
        epoch, members = group.epoch, dict(group.members)
        standing = Standing(members, group.targets)
        assignment = yield from _assign(group, standing, topology, configs)
        is_present = partial(groups.holds, group)
        present_id = partial(_present_id, group, members)
        stored = StoredTargets(group_id, is_present, present_id, group.targets)
        yield from store_in_steps(_TARGETS, stored, members, assignment)
        if is_present():
            effects = Effects()
            effects.records.append(target_epoch_record(group_id, epoch, now_ms))
            yield effects
    finally:
        group.memory.is_assigning = False


def _present_id(
    group: StreamsGroup, members: Mapping[str, StreamsMember], member_id: str
) -> str | None:
    """The id under which one of `members` is in the group now; None if it has left."""
    if member_id in group.members:
        return member_id
    successor = group.static_member(members[member_id].instance_id)
    return None if successor is None else successor.member_id


def _assign(
    group: StreamsGroup,
    standing: Standing,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
) -> Generator[None, None, Assignment]:
    members = standing.members
    if not topology.is_ready or not members:
        return {}
    # By id, so that it does not matter in which order the log has them.
    offsets = group.memory.task_offsets
    specified = {
        member_id: MemberSpecification(
            members[member_id].process_id,
            members[member_id].assigned.tasks,
            offsets.get(member_id, NO_OFFSETS).restored,
        )
        for member_id in sorted(members)
    }
    replicas = int(configs.get(NUM_STANDBY_REPLICAS, "0"))
    return (yield from assign(Specification(specified, topology.subtopologies, replicas)))


def _in_both(old: Tasks, new: Tasks) -> Tasks:
    return Tasks(*(in_both(before, after) for before, after in zip(old, new, strict=True)))


_TARGETS: Final = TargetKind(NO_TASKS, _in_both, target_record)
