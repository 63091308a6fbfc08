"""Keys and values of `__share_group_state` (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, int8, int16, int32, int64, string, uuid
from protocol.schema import Coded, Struct

if TYPE_CHECKING:
    from uuid import UUID


class StoredBatch(Struct):
    """Records in one state; in records and in requests."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    """0 available, 2 acknowledged, 4 archived."""
    delivery_count: int = int16()


class ShareSnapshotKey(Coded, versions="0", flexible="none", key_type=0):
    """Names a share-partition whose snapshot follows, or, without a value, is deleted."""

    group_id: str = string()
    topic_id: UUID = uuid()
    partition: int = int32()


class ShareSnapshotValue(Coded, versions="0", flexible="0+"):
    """The whole state of a share-partition."""

    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    """Later than the creation if the state was only written again."""
    state_batches: list[StoredBatch] = array(StoredBatch)


class ShareUpdateKey(Coded, versions="0", flexible="none", key_type=1):
    """Names a share-partition whose state has changed."""

    group_id: str = string()
    topic_id: UUID = uuid()
    partition: int = int32()


class ShareUpdateValue(Coded, versions="0", flexible="0+"):
    """Changes of a share-partition since its last snapshot or update."""

    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    """-1 if it stays."""
    delivery_complete_count: int = int32(default=-1, tag=0)
    state_batches: list[StoredBatch] = array(StoredBatch)
