"""Records of `__consumer_offsets`: typed on the way through a shard, bytes in the log.

Value versions are the ones Apache Kafka 3.9 writes: GroupMetadataValue 3; OffsetCommitValue 3, or 1
for an old client's own retention, which only that version has. Those of the
newer kinds of group have one version each; they are made beside the groups of that kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from protocol.messages import consumer_group_records, share_group_records, streams_group_records
from protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from protocol.messages.consumer_offsets_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.group import ClassicGroup
    from coordinator.offsets.offset_store import CommittedOffset
    from protocol.schema import Coded

GROUP_VALUE_VERSION = 3
OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ShareGroupKey = (
    ShareGroupMetadataKey
    | ShareGroupMemberMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
StreamsGroupKey = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)
KeyOfKind = ConsumerGroupKey | ShareGroupKey | StreamsGroupKey
"""The keys of each kind of group but the classic one."""
CONSUMER_GROUP_KEYS: tuple[type[ConsumerGroupKey], ...] = get_args(ConsumerGroupKey)
STREAMS_GROUP_KEYS: tuple[type[StreamsGroupKey], ...] = get_args(StreamsGroupKey)
SHARE_GROUP_KEYS: tuple[type[ShareGroupKey], ...] = get_args(ShareGroupKey)
RECORDS_OF_KINDS: dict[int, tuple[type[KeyOfKind], type[Coded]]] = {
    key.KEY_TYPE: (key, getattr(messages, key.__name__.removesuffix("Key") + "Value"))
    for messages, keys in (
        (consumer_group_records, CONSUMER_GROUP_KEYS),
        (streams_group_records, STREAMS_GROUP_KEYS),
        (share_group_records, SHARE_GROUP_KEYS),
    )
    for key in keys
}
"""Classes of keys and values, by key type."""


class OffsetsRecord(NamedTuple):
    """One record: a key and its new value, None for a tombstone."""

    key: OffsetCommitKey | GroupMetadataKey | KeyOfKind
    value: OffsetCommitValue | GroupMetadataValue | Coded | None


def offset_record(
    group_id: str, topic: str, partition: int, committed: CommittedOffset
) -> OffsetsRecord:
    """Store a position."""
    return OffsetsRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition),
        OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
        ),
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> OffsetsRecord:
    """Forget a position."""
    return OffsetsRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def group_tombstone(group_id: str) -> OffsetsRecord:
    """Forget a group."""
    return OffsetsRecord(GroupMetadataKey(group=group_id), None)


def generation_record(
    group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int
) -> OffsetsRecord:
    """The group's present generation with `assignments` by member id; missing ones are empty."""
    protocol = group.protocol or ""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata_for(protocol),
            assignment=assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    return OffsetsRecord(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader_id,
            current_state_timestamp=now_ms,
            members=members,
        ),
    )


def empty_generation_record(group: ClassicGroup, generation: int, now_ms: int) -> OffsetsRecord:
    """A generation without members."""
    return OffsetsRecord(
        GroupMetadataKey(group=group.group_id),
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=generation,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        ),
    )


def encode_key(record: OffsetsRecord) -> bytes:
    """The record's key as Apache Kafka writes it."""
    return record.key.encode_versioned()


def encode_value(record: OffsetsRecord) -> bytes | None:
    """The record's value as Apache Kafka 3.9 writes it; None for a tombstone."""
    value = record.value
    if isinstance(value, OffsetCommitValue):
        expires = value.expire_timestamp >= 0
        return value.encode_versioned(
            OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else OFFSET_VALUE_VERSION
        )
    if isinstance(value, GroupMetadataValue):
        return value.encode_versioned(GROUP_VALUE_VERSION)
    return None if value is None else value.encode_versioned()


def step_of(record: OffsetsRecord) -> str:
    """The kind of record: its key's name, and whether it is a tombstone."""
    name = type(record.key).__name__.removesuffix("Key")
    return f"{name}Tombstone" if record.value is None else name


def decode(key: bytes, value: bytes | None) -> OffsetsRecord | None:
    """Inverse of the two above; None for kinds of record that no group here has.

    Raises DecodeError for a damaged record, and for a value version that this code does not know.
    """
    key_type = int.from_bytes(key[:2], "big", signed=True) if len(key) > 1 else -1
    if key_type == GroupMetadataKey.KEY_TYPE:
        group_key = GroupMetadataKey.decode(0, key, 2)
        return OffsetsRecord(
            group_key, None if value is None else GroupMetadataValue.decode_versioned(value)[1]
        )
    if key_type in (OffsetCommitKey.KEY_TYPE, LegacyOffsetCommitKey.KEY_TYPE):
        offset_key = OffsetCommitKey.decode(0, key, 2)
        return OffsetsRecord(
            offset_key, None if value is None else OffsetCommitValue.decode_versioned(value)[1]
        )
    classes = RECORDS_OF_KINDS.get(key_type)
    if classes is not None:
        key_class, value_class = classes
        return OffsetsRecord(
            key_class.decode(0, key, 2),
            None if value is None else value_class.decode_versioned(value)[1],
        )
    if key_type < 0:
        raise DecodeError(f"key of an offsets record starts with {key[:2]!r}")
    return None
