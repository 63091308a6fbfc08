"""Changes of a share group's start offsets by its administrator, and deletion of a share group.

Each takes two steps, between which the broker asks the share coordinator: first the group notes the
partitions to initialise or delete, then the results. A broker that dies in between leaves the note,
and asking again does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.share_groups.group import NO_STATES, PartitionStates
from coordinator.share_groups.initialisation import Initialisation, by_topic, initialising
from coordinator.share_groups.records import states_record
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from uuid import UUID

    from coordinator.records import OffsetsRecord
    from coordinator.share_groups.group import ShareGroup
    from coordinator.topics import Topics

NOTHING_TO_DELETE = "There is no offset information to delete."

Places = list[tuple["UUID", int]]


class Forgetting(NamedTuple):
    """Share state to delete at the share coordinator, once the group's records are committed."""

    places: Places
    refused: Mapping[str, ApiError]
    """Topics without any state to delete."""
    records: list[OffsetsRecord]


def check_empty(group: ShareGroup) -> None:
    """Raise NON_EMPTY_GROUP if the group has members."""
    if group.members:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)


def alter(
    group: ShareGroup, offsets: Mapping[tuple[UUID, int], int], names: Mapping[UUID, str]
) -> tuple[Initialisation, list[OffsetsRecord]]:
    """Begin to set start offsets of partitions that exist."""
    begun = by_topic(offsets, names)
    states = initialising(group.states, begun)
    wanted = Initialisation(group.group_id, group.epoch, dict(offsets))
    return wanted, [states_record(group.group_id, states)] if begun else []


def delete_all(group: ShareGroup, topics: Topics) -> Forgetting:
    """Begin to forget all state of a group that is to be deleted."""
    initialising_topics, initialised, deleting = group.states
    places: dict[tuple[UUID, int], None] = {}
    names: dict[UUID, str] = {}
    for states in (initialised, initialising_topics):
        for topic_id, each in states.items():
            names[topic_id] = each.name
            places |= {(topic_id, index): None for index in sorted(each.partitions)}
    for topic_id in deleting:  # a deletion that was not completed
        view = _view(topics, topic_id)
        if view is not None:
            names[topic_id] = view[0]
            places |= {(topic_id, index): None for index in range(view[1])}
    kept = NO_STATES._replace(deleting=names)
    records = [] if group.states == NO_STATES else [states_record(group.group_id, kept)]
    existing = [place for place in places if topics.name_of(place[0]) is not None]
    return Forgetting(existing, {}, records)


def delete_topics(group: ShareGroup, names: Collection[str], topics: Topics) -> Forgetting:
    """Begin to forget the state of topics."""
    initialised, deleting = dict(group.states.initialised), dict(group.states.deleting)
    places: Places = []
    refused: dict[str, ApiError] = {}
    for name in names:
        view = topics.find(name)
        if view is None:
            refused[name] = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        known = initialised.pop(view.topic_id, None)
        if known is not None:
            places += [(view.topic_id, index) for index in sorted(known.partitions)]
            deleting[view.topic_id] = name
        elif view.topic_id in deleting:
            places += [(view.topic_id, index) for index in range(view.partition_count)]
        else:
            refused[name] = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING_TO_DELETE)
    states = PartitionStates(group.states.initialising, initialised, deleting)
    records = [] if states == group.states else [states_record(group.group_id, states)]
    return Forgetting(places, refused, records)


def forgotten(group: ShareGroup, topic_ids: Collection[UUID]) -> list[OffsetsRecord]:
    """The share coordinator has forgotten all of these topics."""
    left = {each: name for each, name in group.states.deleting.items() if each not in topic_ids}
    if left == group.states.deleting:
        return []
    return [states_record(group.group_id, group.states._replace(deleting=left))]


def without_topics(group: ShareGroup, topic_ids: Collection[UUID]) -> list[OffsetsRecord]:
    """Topics were deleted: the share coordinator forgets them by itself."""
    initialising_topics, initialised, deleting = group.states
    left = PartitionStates(
        {each: known for each, known in initialising_topics.items() if each not in topic_ids},
        {each: known for each, known in initialised.items() if each not in topic_ids},
        {each: name for each, name in deleting.items() if each not in topic_ids},
    )
    return [] if left == group.states else [states_record(group.group_id, left)]


def _view(topics: Topics, topic_id: UUID) -> tuple[str, int] | None:
    name = topics.name_of(topic_id)
    view = None if name is None else topics.find(name)
    return None if view is None else (view.name, view.partition_count)
