"""Subscriptions and assignments of classic members: opaque bytes to the group protocol.

A subscription or an assignment is its version, two bytes, and then the message. A later version
only adds fields behind those of the latest one that is known.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from protocol.messages.consumer_groups import TopicPartitions
from protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from coordinator.consumer_groups.member import Owned
    from coordinator.modern_groups.assignments import Target
    from coordinator.topics import Topics

LATEST = 3
VERSION_BYTES = 2

MessageT = TypeVar("MessageT", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Decode a member's subscription. Raises DecodeError."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Decode a member's assignment. Raises DecodeError."""
    return _read(ConsumerProtocolAssignment, assignment)


def _read(message: type[MessageT], data: bytes) -> MessageT:
    return message.decode_from(min(version_of(data), LATEST), data, VERSION_BYTES)[0]


def version_of(data: bytes) -> int:
    """The version in which a member speaks. Raises DecodeError."""
    version = int.from_bytes(data[:VERSION_BYTES], "big", signed=True)
    if len(data) < VERSION_BYTES or version < 0:
        raise DecodeError(f"embedded consumer protocol starts with {data[:VERSION_BYTES]!r}")
    return version


def encode_assignment(partitions: Owned | Target, topics: Topics, version: int) -> bytes:
    """Encode a member's assignment; partitions of deleted topics are left out."""
    version = min(version, LATEST)
    assigned = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.AssignedPartition(topic=name, partitions=sorted(indexes))
            for topic_id, indexes in partitions.items()
            if (name := topics.name_of(topic_id)) is not None
        ]
    )
    return struct.pack(">h", version) + assigned.encode(version)


def by_topic_id(
    partitions: Iterable[
        ConsumerProtocolAssignment.AssignedPartition | ConsumerProtocolSubscription.OwnedPartition
    ],
    topics: Topics,
) -> dict[UUID, list[int]]:
    """Partitions as members name them, without those that do not exist."""
    found: dict[UUID, list[int]] = {}
    for each in partitions:
        view = topics.find(each.topic)
        if view is not None:
            existing = [one for one in each.partitions if 0 <= one < view.partition_count]
            found.setdefault(view.topic_id, []).extend(existing)
    return found


def owned_as_in_heartbeats(
    subscription: ConsumerProtocolSubscription, topics: Topics
) -> list[TopicPartitions]:
    """Return the partitions that a joining member still owns, in the form of heartbeats."""
    owned = by_topic_id(subscription.owned_partitions, topics)
    return [TopicPartitions(topic_id=topic_id, partitions=owned[topic_id]) for topic_id in owned]
