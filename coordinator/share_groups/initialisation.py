"""Initialisation of a share group's partitions at the share coordinator.

    initialising   a member subscribes to the topic; the share coordinator is asked
    initialised    it has answered: the partition can be assigned
    deleting       its state is to be deleted, with the group or with its offsets

A partition that stays in the first is requested again after
`group.share.initialize.retry.interval.ms`, or at once by the next coordinator of the group. Nothing
is initialised while state of the group is being deleted: see `ShareShard.forgetting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.modern_groups.watches import NEVER_MS
from coordinator.share_groups.group import PartitionStates, TopicStates
from coordinator.share_state.state import NO_START_OFFSET

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from uuid import UUID

    from coordinator.share_groups.group import Initialised, ShareGroup
    from coordinator.share_groups.shard_parts import ShareParts

Partitions = dict["UUID", set[int]]


class Initialisation(NamedTuple):
    """Request to the share coordinator, once the group's records are committed."""

    group_id: str
    state_epoch: int
    start_offsets: Mapping[tuple[UUID, int], int]
    """By topic and partition; NO_START_OFFSET leaves it to the partition's leader."""


def begin(parts: ShareParts, group: ShareGroup, names: Collection[str]) -> dict[UUID, TopicStates]:
    """Partitions of topics that have no state and are not about to get it; they are from now on.

    `names` are the topics that are subscribed to: the group's own, or those after this heartbeat.
    Costs a look at every topic, but not again before something has changed.
    """
    if group.group_id in parts.forgetting:
        return {}
    watch, now_ms = parts.watches.of(group.group_id), parts.watches.now_ms
    as_of = (parts.topics.revision, group.changes)
    is_known = names is group.names and watch.initialised_as_of == as_of
    if is_known and now_ms < watch.retry_ms:
        return {}
    retry_after_ms = parts.settings.initialize_retry_interval_ms
    missing: dict[UUID, TopicStates] = {}
    watch.retry_ms = NEVER_MS
    for view in filter(None, map(parts.topics.find, names)):
        initialised = group.states.initialised.get(view.topic_id)
        done = frozenset() if initialised is None else initialised.partitions
        pending = group.states.initialising.get(view.topic_id)
        retry_ms = watch.begun_ms.get(view.topic_id, -retry_after_ms) + retry_after_ms
        if pending is not None and now_ms < retry_ms:
            done |= pending.partitions
            watch.retry_ms = min(watch.retry_ms, retry_ms)
        if len(done) < view.partition_count:
            wanted = frozenset(range(view.partition_count)) - done
            missing[view.topic_id] = TopicStates(view.name, wanted)
            watch.begun_ms[view.topic_id] = now_ms
            watch.retry_ms = min(watch.retry_ms, now_ms + retry_after_ms)
        elif pending is None:
            watch.begun_ms.pop(view.topic_id, None)
    watch.initialised_as_of = as_of
    return missing


def initialising(states: PartitionStates, begun: Initialised) -> PartitionStates:
    """`states` once more partitions are to be initialised."""
    deleting = {each: name for each, name in states.deleting.items() if each not in begun}
    return PartitionStates(_united(states.initialising, begun), states.initialised, deleting)


def initialised(states: PartitionStates, done: Initialised) -> PartitionStates:
    """`states` once partitions have been initialised."""
    return PartitionStates(
        _without(states.initialising, done), _united(states.initialised, done), states.deleting
    )


def not_initialised(states: PartitionStates, failed: Initialised) -> PartitionStates:
    """Return `states` after a failed initialisation, which will be requested again."""
    return states._replace(initialising=_without(states.initialising, failed))


def by_topic(partitions: Iterable[tuple[UUID, int]], names: Mapping[UUID, str]) -> Initialised:
    """Partitions of topics that have a name."""
    found: Partitions = {}
    for topic_id, index in partitions:
        found.setdefault(topic_id, set()).add(index)
    return {
        topic_id: TopicStates(names[topic_id], frozenset(indexes))
        for topic_id, indexes in found.items()
        if topic_id in names
    }


def start_offsets(begun: Initialised) -> dict[tuple[UUID, int], int]:
    """Return unknown start offsets, as in `Initialisation`."""
    return {
        (topic_id, index): NO_START_OFFSET
        for topic_id, each in begun.items()
        for index in sorted(each.partitions)
    }


def _united(some: Initialised, others: Initialised) -> dict[UUID, TopicStates]:
    united = dict(some)
    for topic_id, each in others.items():
        known = united.get(topic_id)
        before = frozenset() if known is None else known.partitions
        united[topic_id] = TopicStates(each.name, before | each.partitions)
    return united


def _without(some: Initialised, others: Initialised) -> dict[UUID, TopicStates]:
    left: dict[UUID, TopicStates] = {}
    for topic_id, each in some.items():
        gone = others.get(topic_id)
        kept = each.partitions if gone is None else each.partitions - gone.partitions
        if kept:
            left[topic_id] = each._replace(partitions=kept)
    return left
