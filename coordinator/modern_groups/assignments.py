"""Partitions of topics that are assigned to a member: as decided, in messages, and described."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from protocol.messages.consumer_groups import (
    Assignment,
    DescribedAssignment,
    NamedTopicPartitions,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.topics import Topics

Target = Mapping[UUID, frozenset[int]]
"""Topic id → partitions."""

NOTHING: Final[Target] = {}


KeyT = TypeVar("KeyT")


def in_both(
    one: Mapping[KeyT, frozenset[int]], other: Mapping[KeyT, frozenset[int]]
) -> Mapping[KeyT, frozenset[int]]:
    """Return the intersection of two assignments."""
    both = {key: one[key] & other[key] for key in one if key in other}
    return {key: partitions for key, partitions in both.items() if partitions}


def topic_partitions(assigned: Mapping[UUID, Iterable[int]]) -> list[TopicPartitions]:
    """The form of messages and records, with partitions in ascending order."""
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assigned.items()
    ]


def target_of(stored: Iterable[TopicPartitions]) -> Target:
    """Inverse of `topic_partitions`."""
    return {each.topic_id: frozenset(each.partitions) for each in stored}


def assignment(assigned: Mapping[UUID, Iterable[int]]) -> Assignment:
    """Build the assignment in the response to a heartbeat."""
    return Assignment(topic_partitions=topic_partitions(assigned))


def described(assigned: Mapping[UUID, Iterable[int]], topics: Topics) -> DescribedAssignment:
    """Describe an assignment: topics that still exist, with their names."""
    return DescribedAssignment(
        topic_partitions=[
            NamedTopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )
