"""The next target assignment of a share group, and the records of it.

A group of some size is assigned within the heartbeat that finds its target out of date; a larger
one in steps, between which other requests are served and members keep the former target. Its
records are appended piece by piece, the epoch last: until then the group's epoch is ahead, so that
the assignment is computed again by the next coordinator to load the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.effects import Effects
from coordinator.modern_groups.assignments import NOTHING
from coordinator.modern_groups.target import ASSIGNED_AT_ONCE, RECORDS_AT_ONCE, finished
from coordinator.share_groups.assignor import assign_shares
from coordinator.share_groups.group import are_alike
from coordinator.share_groups.records import target_epoch_record, target_record

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from uuid import UUID

    from coordinator.effects import Steps
    from coordinator.modern_groups.assignments import Target
    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.member import ShareMember
    from coordinator.share_groups.shard_parts import ShareParts


def is_small(group: ShareGroup) -> bool:
    """Return whether the group is small enough to be assigned within a heartbeat."""
    partitions = sum(len(each.partitions) for each in group.states.initialised.values())
    return len(group.members) + partitions + len(group.names) <= ASSIGNED_AT_ONCE


def assign_now(
    parts: ShareParts,
    group: ShareGroup,
    change: tuple[int, ShareMember, bool],
    effects: Effects,
    now_ms: int,
) -> Target:
    """Append the records of the next target assignment; returns a member's part.

    `change` is the group's epoch, the member as it will be, and whether all subscribe to the same.
    """
    epoch, updated, alike = change
    members = {**group.members, updated.member_id: updated}
    assignment = finished(_assignment(parts, group, members, alike=alike))
    for member_id, target in assignment.items():
        if target != group.targets.get(member_id):
            effects.records.append(target_record(group.group_id, member_id, target))
    effects.records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return assignment.get(updated.member_id, NOTHING)


def assign_later(parts: ShareParts, group_id: str, now_ms: int) -> Steps[None]:
    """Assign in steps, for the group as it is when they begin."""
    watch = parts.watches.of(group_id)
    try:
        group = parts.groups.find(group_id)
        if group is None or group.epoch <= group.assignment_epoch:
            return
        epoch, members = group.epoch, dict(group.members)
        alike = are_alike(group.names, len(members))
        assignment = yield from _assignment(parts, group, members, alike=alike)
        effects = Effects()
        for member_id, target in assignment.items():
            if not parts.groups.holds(group):
                return
            if member_id in group.members and target != group.targets.get(member_id):
                effects.records.append(target_record(group_id, member_id, target))
            if len(effects.records) >= RECORDS_AT_ONCE:
                yield effects
                effects = Effects()
        effects.records.append(target_epoch_record(group_id, epoch, now_ms))
        yield effects
    finally:
        watch.is_assigning = False


def _assignment(
    parts: ShareParts,
    group: ShareGroup,
    members: Mapping[str, ShareMember],
    *,
    alike: bool,
) -> Generator[None, None, dict[str, Target]]:
    known: dict[frozenset[str], frozenset[UUID]] = {}
    subscriptions = {}
    for member_id, member in members.items():
        topic_ids = known.get(member.topics)
        if topic_ids is None:
            views = filter(None, map(parts.topics.find, member.topics))
            topic_ids = known[member.topics] = frozenset(view.topic_id for view in views)
            yield
        subscriptions[member_id] = topic_ids
    assignable = {topic_id: each.partitions for topic_id, each in group.states.initialised.items()}
    return (yield from assign_shares(subscriptions, group.targets, assignable, are_alike=alike))
