"""The next target assignment of a group: input of the assignor, and records of its result.

A group of some size is assigned within the heartbeat that finds its target out of date, as in
Apache Kafka 4.3. A larger one is assigned in steps, between which other requests are served, and
its members keep the former target meanwhile; `modern_groups.target` says how that is stored.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.consumer_groups.assignors.ranges import assign_ranges
from coordinator.consumer_groups.assignors.specification import (
    MEMBERS_PER_STEP,
    MemberSpecification,
    Specification,
)
from coordinator.consumer_groups.assignors.uniform import assign_uniformly
from coordinator.consumer_groups.records import target_epoch_record, target_record
from coordinator.effects import Effects
from coordinator.modern_groups.assignments import NOTHING, in_both
from coordinator.modern_groups.target import (
    ASSIGNED_AT_ONCE,
    StoredTargets,
    TargetKind,
    finished,
    store_in_steps,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.consumer_groups.assignors.specification import Assignor
    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.effects import Steps
    from coordinator.modern_groups.assignments import Target

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}


_TARGETS: Final = TargetKind(NOTHING, in_both, target_record)


class Change(NamedTuple):
    """Change of the group by a heartbeat's member, which is not in the group yet."""

    group_epoch: int
    are_alike: bool
    assignor: str
    updated: ConsumerMember
    replaced_id: str | None
    """Member id of the static member that it replaces."""


def is_small(parts: ShardParts, group: ConsumerGroup, topics: AbstractSet[str]) -> bool:
    """Return whether the group is small enough to be assigned within a heartbeat."""
    size = len(group.members)
    if size + len(topics) > ASSIGNED_AT_ONCE:
        return False
    views = map(parts.topics.find, topics)
    return size + sum(view.partition_count for view in views if view) <= ASSIGNED_AT_ONCE


def assign_now(
    parts: ShardParts, group: ConsumerGroup, change: Change, effects: Effects, now_ms: int
) -> Target:
    """Append the records of the next target assignment; returns the updated member's part."""
    members = dict(group.members)
    if change.replaced_id is not None:
        members.pop(change.replaced_id, None)
    updated = change.updated
    members[updated.member_id] = updated
    targets = dict(group.targets)
    targets[updated.member_id] = group.target_of(updated)
    specified = finished(_specify(parts, group, members, targets, are_alike=change.are_alike))
    assignment = finished(ASSIGNORS[change.assignor](specified))
    for member_id in members:
        target = assignment.get(member_id, NOTHING)
        if target != group.targets.get(member_id):
            effects.records.append(target_record(group.group_id, member_id, target))
    effects.records.append(target_epoch_record(group.group_id, change.group_epoch, now_ms))
    return assignment.get(updated.member_id, NOTHING)


def assign_later(parts: ShardParts, group_id: str, assignor: str, now_ms: int) -> Steps[None]:
    """Assign in steps, for the group as it is when they begin."""
    watch = parts.watches.of(group_id)
    try:
        group = parts.groups.find(group_id)
        if group is None or group.epoch <= group.assignment_epoch:
            return
        is_present = partial(parts.groups.holds, group)
        epoch, members = group.epoch, dict(group.members)
        are_alike = group.subscriptions.are_alike(len(members))
        specified = yield from _specify(
            parts, group, members, dict(group.targets), are_alike=are_alike
        )
        assignment = yield from ASSIGNORS[assignor](specified)
        stored = StoredTargets(
            group_id, is_present, partial(_present_id, group, members), group.targets
        )
        yield from store_in_steps(_TARGETS, stored, members, assignment)
        if is_present():
            effects = Effects()
            effects.records.append(target_epoch_record(group_id, epoch, now_ms))
            yield effects
    finally:
        watch.is_assigning = False


def _present_id(
    group: ConsumerGroup, members: Mapping[str, ConsumerMember], member_id: str
) -> str | None:
    """The id under which one of `members` is in the group now; None if it has left."""
    instance_id = members[member_id].instance_id
    if member_id in group.members or instance_id is None:
        return member_id if member_id in group.members else None
    return group.static_members.get(instance_id)


def _specify(
    parts: ShardParts,
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    targets: Mapping[str, Target],
    *,
    are_alike: bool,
) -> Generator[None, None, Specification]:
    counts: dict[UUID, int] = {}
    known: dict[tuple[frozenset[str], str | None], frozenset[UUID]] = {}
    specified: dict[str, MemberSpecification] = {}
    topic_ids: frozenset[UUID] | None = None
    # By id, so that it does not matter in which order the log has them.
    for count, (member_id, member) in enumerate(sorted(members.items(), key=_id_of)):
        if topic_ids is None or not are_alike:
            subscription = (member.topics, member.pattern)
            topic_ids = known.get(subscription)
            if topic_ids is None:
                topic_ids = _topic_ids(parts, group.subscribed_topics(member), counts)
                known[subscription] = topic_ids
        specified[member_id] = MemberSpecification(
            member.instance_id, topic_ids, targets.get(member_id, NOTHING)
        )
        if count % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    return Specification(specified, counts, are_alike)


def _id_of(entry: tuple[str, ConsumerMember]) -> str:
    return entry[0]


def _topic_ids(
    parts: ShardParts, names: AbstractSet[str], counts: dict[UUID, int]
) -> frozenset[UUID]:
    views = [view for view in map(parts.topics.find, names) if view is not None]
    counts.update((view.topic_id, view.partition_count) for view in views)
    return frozenset(view.topic_id for view in views)
