"""Records of `__share_group_state`: typed on the way through a shard, bytes in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.share_state.state import SharePartition, ShareState, StateBatch
from protocol.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StoredBatch,
)
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.share_state.batches import Batches

KEY_TYPE_BYTES = 2


class ShareUpdate(NamedTuple):
    """Changes since the previous snapshot or update."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    """NO_START_OFFSET: unchanged."""
    delivery_complete_count: int
    batches: Batches


class ShareStateRecord(NamedTuple):
    """One record: a share-partition and its state, a change of it, or None: it is deleted."""

    partition: SharePartition
    value: ShareState | ShareUpdate | None


def encode_key(record: ShareStateRecord) -> bytes:
    """The record's key as Apache Kafka writes it."""
    key = ShareUpdateKey if isinstance(record.value, ShareUpdate) else ShareSnapshotKey
    group_id, topic_id, partition = record.partition
    return key(group_id=group_id, topic_id=topic_id, partition=partition).encode_versioned()


def encode_value(record: ShareStateRecord) -> bytes | None:
    """The record's value as Apache Kafka writes it; None for a tombstone."""
    value = record.value
    if value is None:
        return None
    if isinstance(value, ShareUpdate):
        return ShareUpdateValue(
            snapshot_epoch=value.snapshot_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            state_batches=stored_batches(value.batches),
        ).encode_versioned()
    return ShareSnapshotValue(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        create_timestamp=value.created_ms,
        write_timestamp=value.written_ms,
        state_batches=stored_batches(value.batches),
    ).encode_versioned()


def step_of(record: ShareStateRecord) -> str:
    """The kind of record: `ShareSnapshot`, `ShareUpdate` or `ShareSnapshotTombstone`."""
    if record.value is None:
        return "ShareSnapshotTombstone"
    return "ShareUpdate" if isinstance(record.value, ShareUpdate) else "ShareSnapshot"


def stored_batches(batches: Batches) -> list[StoredBatch]:
    """Batches in the form of records and requests."""
    return [StoredBatch(**batch._asdict()) for batch in batches]


def batches_of(stored: Iterable[StoredBatch]) -> Batches:
    """Inverse of `stored_batches`."""
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in stored
    )


def decode(key: bytes, value: bytes | None) -> ShareStateRecord | None:
    """Inverse of the two above; None for kinds of record that are not known.

    Raises DecodeError for a damaged record.
    """
    if len(key) < KEY_TYPE_BYTES:
        raise DecodeError(f"key of a share state record is {key!r}")
    key_type = int.from_bytes(key[:KEY_TYPE_BYTES], "big")
    if key_type == ShareSnapshotKey.KEY_TYPE:
        partition = _partition(ShareSnapshotKey.decode(0, key, KEY_TYPE_BYTES))
        state = None if value is None else _state(ShareSnapshotValue.decode_versioned(value)[1])
        return ShareStateRecord(partition, state)
    if key_type == ShareUpdateKey.KEY_TYPE:
        if value is None:
            raise DecodeError("an update of share state has no value")
        partition = _partition(ShareUpdateKey.decode(0, key, KEY_TYPE_BYTES))
        return ShareStateRecord(partition, _update(ShareUpdateValue.decode_versioned(value)[1]))
    return None


def _partition(key: ShareSnapshotKey | ShareUpdateKey) -> SharePartition:
    return SharePartition(key.group_id, key.topic_id, key.partition)


def _state(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=batches_of(value.state_batches),
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
    )


def _update(value: ShareUpdateValue) -> ShareUpdate:
    return ShareUpdate(
        snapshot_epoch=value.snapshot_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=batches_of(value.state_batches),
    )
