"""The `.snapshot` file: the producer state of a partition as of the offset in its name.

Layout, big-endian: int16 version 1, uint32 CRC-32C of everything from byte 6 on, int32 count, then
46 bytes per producer: int64 producer id, int16 epoch, int32 last sequence, int64 last offset,
int32 offset delta of the last batch, int64 timestamp, int32 coordinator epoch (-1: none), int64
first offset of the open transaction (-1: none).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from google_crc32c import value as crc32c

from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION: Final = 1
PREFIX: Final = Struct(">hI")
COUNT: Final = Struct(">i")
ENTRY: Final = Struct(">qhiqiqiq")


class SnapshotEntry(NamedTuple):
    """Entry of a snapshot for one producer, in the order of the file."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    """Bytes of a snapshot file."""
    packed = [ENTRY.pack(*entry) for entry in entries]
    body = COUNT.pack(len(packed)) + b"".join(packed)
    return PREFIX.pack(VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[SnapshotEntry]:
    """Entries of a snapshot file; DamagedFileError when it is not sound."""
    if len(data) < PREFIX.size + COUNT.size:
        raise DamagedFileError(f"{len(data)} bytes are too few for a snapshot")
    version, crc = PREFIX.unpack_from(data)
    if version != VERSION:
        raise DamagedFileError(f"snapshot version {version} is unknown")
    body = data[PREFIX.size :]
    if crc32c(body) != crc:
        raise DamagedFileError("the snapshot's checksum does not match")
    (count,) = COUNT.unpack_from(body)
    if len(body) != COUNT.size + count * ENTRY.size:
        raise DamagedFileError(f"the snapshot holds {len(body)} bytes for {count} producers")
    return [SnapshotEntry(*fields) for fields in ENTRY.iter_unpack(body[COUNT.size :])]
