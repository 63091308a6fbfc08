"""Deletion: OffsetDelete, DeleteGroups, expiry (KIP-211), and topics that were deleted.

When an offset expires (`offsets.retention.minutes` after the base time):

    group                          base time                  spared
    EMPTY, has had members         when it became empty       nothing
    STABLE consumer group          the commit                 topics that members subscribe to
    any group of the newer kinds   the commit                 topics that members consume
    only offsets, never members    the commit                 nothing
    anything else, rebalances too  never                      everything

A group without members is deleted with its last offset. Offsets of open transactions
(`pending_offsets`) are deleted with their topic or group, and by OffsetDelete; they do not expire,
nor do the offsets that they would replace, nor their group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.states import GroupState
from coordinator.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from coordinator.offsets.offset_store import NO_EXPIRY_MS
from coordinator.records import group_tombstone, offset_tombstone
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import OffsetDeleteResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from coordinator.groups.group import ClassicGroup
    from coordinator.modern_groups.group_kind import GroupKind
    from coordinator.offsets.offset_store import CommittedOffset, OffsetStore
    from coordinator.records import OffsetsRecord
    from protocol.messages.offset_fetch import OffsetDeleteRequest

TopicResponse = OffsetDeleteResponse.Topic
PartitionResponse = OffsetDeleteResponse.Topic.Partition


def delete_group(
    group: ClassicGroup | None, store: OffsetStore
) -> tuple[ErrorCode, list[OffsetsRecord]]:
    """Tombstones for a group without members and for its offsets."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND, []
    if group.state is not GroupState.EMPTY:
        return ErrorCode.NON_EMPTY_GROUP, []
    records = offsets_at(group.group_id, store.places_of(group.group_id))
    return ErrorCode.NONE, [*records, group_tombstone(group.group_id)]


def delete_offsets(
    group: ClassicGroup | None, request: OffsetDeleteRequest, store: OffsetStore
) -> tuple[OffsetDeleteResponse, list[OffsetsRecord]]:
    """Tombstones for the offsets of topics that no member consumes."""
    if group is None:
        return _refused(ErrorCode.GROUP_ID_NOT_FOUND), []
    has_members = group.state is not GroupState.EMPTY
    if has_members and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return _refused(ErrorCode.NON_EMPTY_GROUP), []
    consumed = {each.name for each in request.topics if has_members and group.consumes(each.name)}
    response, records = delete_unsubscribed(request, consumed, store)
    return response, records + _tombstone_if_left_empty(group, store, len(records))


def delete_unsubscribed(
    request: OffsetDeleteRequest, consumed: Collection[str], store: OffsetStore
) -> tuple[OffsetDeleteResponse, list[OffsetsRecord]]:
    """Tombstones for the offsets of topics that are not among those that are consumed."""
    response = _refused(ErrorCode.NONE)
    records = []
    for topic in request.topics:
        is_consumed = topic.name in consumed
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_consumed else ErrorCode.NONE
        answers = [
            PartitionResponse(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ]
        response.topics.append(TopicResponse(name=topic.name, partitions=answers))
        records += [
            offset_tombstone(request.group_id, topic.name, each.partition_index)
            for each in topic.partitions
            if not is_consumed and store.has(request.group_id, topic.name, each.partition_index)
        ]
    return response, records


def offsets_at(group_id: str, places: Iterable[tuple[str, int]]) -> list[OffsetsRecord]:
    """Tombstones for a group's offsets of these topics and partitions."""
    return [offset_tombstone(group_id, topic, partition) for topic, partition in places]


def delete_places(
    group_id: str,
    places: Collection[tuple[str, int]],
    group: ClassicGroup | None,
    store: OffsetStore,
) -> list[OffsetsRecord]:
    """The same, and for the group if it is a classic one that this leaves empty."""
    records = offsets_at(group_id, places)
    if records and group is not None:
        records += _tombstone_if_left_empty(group, store, len(records))
    return records


def expire_offsets(
    group: ClassicGroup, store: OffsetStore, retention_ms: int, now_ms: int
) -> list[OffsetsRecord]:
    """Tombstones for offsets past their retention, and for a group that this leaves empty."""
    base = _base_time(group)
    if base is None:
        return []
    spared: frozenset[str] = frozenset()
    if group.state is GroupState.STABLE:
        spared = group.topics or spared
    records = [
        offset_tombstone(group.group_id, topic, partition)
        for topic, partition, committed in store.partitions_of(group.group_id)
        if topic not in spared
        and not store.pending.is_pending(group.group_id, topic, partition)
        and _has_expired(committed, base(committed), retention_ms, now_ms)
    ]
    return records + _tombstone_if_left_empty(group, store, len(records))


def expire_unconsumed(
    group_id: str, kind: GroupKind, store: OffsetStore, retention_ms: int, now_ms: int
) -> list[OffsetsRecord]:
    """The same for a group of one of the newer kinds."""
    spared = kind.consumed_topics(group_id)
    places = store.places_of(group_id)
    records = [
        offset_tombstone(group_id, topic, partition)
        for topic, partition, committed in store.partitions_of(group_id)
        if topic not in spared
        and not store.pending.is_pending(group_id, topic, partition)
        and _has_expired(committed, committed.commit_timestamp_ms, retention_ms, now_ms)
    ]
    if not kind.has_members(group_id) and len(records) == len(places):
        records += kind.tombstones(group_id)
    return records


def _refused(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, topics=[])


def _has_expired(committed: CommittedOffset, base_ms: int, retention_ms: int, now_ms: int) -> bool:
    if committed.expire_timestamp_ms != NO_EXPIRY_MS:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - base_ms >= retention_ms


def _base_time(group: ClassicGroup) -> Callable[[CommittedOffset], int] | None:
    if group.protocol_type is not None and group.state is GroupState.EMPTY:
        emptied_ms = group.state_since_ms
        if emptied_ms >= 0:
            return lambda _: emptied_ms
        return _commit_time
    if group.protocol_type is None and group.state is GroupState.EMPTY:
        return _commit_time
    is_stable_consumer_group = (
        group.state is GroupState.STABLE
        and group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and group.topics is not None
    )
    return _commit_time if is_stable_consumer_group else None


def _commit_time(committed: CommittedOffset) -> int:
    return committed.commit_timestamp_ms


def _tombstone_if_left_empty(
    group: ClassicGroup, store: OffsetStore, removed: int
) -> list[OffsetsRecord]:
    if group.state is not GroupState.EMPTY or group.pending_members:
        return []
    if removed < len(store.places_of(group.group_id)):
        return []
    return [group_tombstone(group.group_id)]
