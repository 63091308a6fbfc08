"""The header of a record batch: read it, walk a run of batches, patch it, compute its checksum.

Layout of a batch of format 2, big-endian (KIP-98; `DefaultRecordBatch` in Apache Kafka):

    position  field                   bytes
           0  base_offset                 8   patched by the leader
           8  batch_length                4   bytes that follow this field
          12  partition_leader_epoch      4   patched by the leader
          16  magic                       1   2
          17  crc                         4   CRC-32C of everything from position 21 on
          21  attributes                  2   codec (bits 0-2), log append time (3),
                                              transactional (4), control (5), delete horizon (6),
                                              and ours: point (12), relay (13), delay (14)
          23  last_offset_delta           4
          27  base_timestamp              8   or the delete horizon, when bit 6 is set
          35  max_timestamp               8
          43  producer_id                 8   -1: none
          51  producer_epoch              2
          53  base_sequence               4   -1: none
          57  record_count                4
          61  records, compressed as a whole

What the leader patches on each append lies before the checksum and outside it, so that an append
never has to recompute a checksum.

The checksum's C extension refuses every `memoryview` (it wants an object that cannot be released),
so `compute_crc` hands it copies. At 16 KB the copy costs 0.5 us; a larger batch is copied in pieces
that stay in the processor's cache. Reaching into the C library by ctypes saves nothing below 64 KB.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from google_crc32c import extend, value

from protocol.errors import ApiError, ErrorCode
from protocol.records.compression import Codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.wire import Buffer

HEADER_BYTES: Final = 61
LENGTH_OVERHEAD: Final = 12
"""Bytes of a batch before the part that `batch_length` counts."""

MAGIC: Final = 2
LENGTH_POSITION: Final = 8
CRC_POSITION: Final = 17
CHECKED_POSITION: Final = 21
"""Start of the part that the checksum covers."""

CRC_CHUNK_BYTES: Final = 1 << 18

MAX_TIMESTAMP_POSITION: Final = 35

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
POINT_BIT: Final = 0x1000
"""Ours: with the delay bit, a delivered batch that compaction reduced to a control batch."""
RELAY_BIT: Final = 0x2000
"""Ours: with the delay bit, a batch with the progress of dead letters (`relay_batch`)."""
DELAY_BIT: Final = 0x4000
"""Ours: the batch waits, was delivered, or cancels (`waiting_batch`). Clients do not look at it."""

SEQUENCE_SPACE: Final = 1 << 31

_HEADER = struct.Struct(">qiibIhiqqqhii")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")
_OFFSET = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

_unpack_header = _HEADER.unpack_from


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, as they stand; nothing about them has been checked."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, header included."""
        return LENGTH_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        """Offset of the last record; of a compacted batch, the last it ever had."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset of the record that follows this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; after 2^31 - 1 comes 0. -1 when there are none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_SPACE

    @property
    def codec(self) -> Codec:
        """Compression codec; ApiError for an unassigned number."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise ApiError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {number} does not exist"
            )
        return Codec(number)

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction (its control batches included)."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Holds a marker for the brokers and clients rather than records of users."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def ends_transaction(self) -> bool:
        """A control batch of a producer; the other kind waits, and has sequence numbers."""
        is_control = self.attributes & CONTROL_BIT != 0
        return is_control and self.base_sequence == NO_SEQUENCE and self.producer_id >= 0

    @property
    def is_log_append_time(self) -> bool:
        """True if every record has `max_timestamp`, the append time, regardless of its delta."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """`base_timestamp` holds the time from which compaction may drop tombstones (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        """Written by an idempotent or transactional producer."""
        return self.producer_id > NO_PRODUCER_ID


_make_header: Callable[[tuple[int, ...]], BatchHeader] = partial(tuple.__new__, BatchHeader)
"""As `BatchHeader._make`, without a Python function in between."""


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Header of the batch at `position`. `struct.error` when fewer than 61 bytes are left.

    Checks nothing, costs about half a microsecond.
    """
    return _make_header(_unpack_header(buffer, position))


def iterate_headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch in `buffer`; a cut-off last one ends the walk.

    Raises ApiError(CORRUPT_MESSAGE) at a batch too short for a header, or of another format.
    """
    position = 0
    end = len(buffer)
    while end - position >= HEADER_BYTES:
        header = _make_header(_unpack_header(buffer, position))
        size = LENGTH_OVERHEAD + header.batch_length
        if size < HEADER_BYTES or header.magic != MAGIC:
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE,
                f"no record batch at byte {position}: "
                f"length {header.batch_length}, format {header.magic}",
            )
        if position + size > end:
            return
        yield position, header
        position += size


def runs_of_batches(buffer: Buffer, most_bytes: int) -> Iterator[memoryview]:
    """Cut `buffer` between batches, into runs of at most `most_bytes`; a batch may be larger alone.

    Looks at lengths only. All bytes come, in order: from a length that cannot be on, in one run.
    """
    view = memoryview(buffer)
    start = position = 0
    end = len(view)
    while end - position >= HEADER_BYTES:
        size = LENGTH_OVERHEAD + int(_INT32.unpack_from(view, position + LENGTH_POSITION)[0])
        if size < HEADER_BYTES or position + size > end:
            break
        if start < position and position + size - start > most_bytes:
            yield view[start:position]
            start = position
        position += size
    if start < end:
        yield view[start:]


def compute_crc(buffer: Buffer, position: int, size: int) -> int:
    """CRC-32C that the batch of `size` bytes at `position` should carry.

    About 1 us for 16 KB and 60 us for 1 MB.
    """
    checked = memoryview(buffer)[position + CHECKED_POSITION : position + size]
    if size <= CRC_CHUNK_BYTES:
        return int(value(checked.tobytes()))
    crc = 0
    for start in range(0, len(checked), CRC_CHUNK_BYTES):
        crc = extend(crc, checked[start : start + CRC_CHUNK_BYTES].tobytes())
    return crc


def replace_records(header: BatchHeader, records: Buffer) -> bytearray:
    """The batch of `header` with other `records`, and the length and checksum that go with them."""
    size = HEADER_BYTES + len(records)
    batch = bytearray(size)
    _HEADER.pack_into(batch, 0, *header._replace(batch_length=size - LENGTH_OVERHEAD, crc=0))
    batch[HEADER_BYTES:] = records
    _UINT32.pack_into(batch, CRC_POSITION, compute_crc(batch, 0, size))
    return batch


def assign_base_offset(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Write offset and leader epoch into the batch at `position`; its checksum stays true."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + 12, leader_epoch)


def assign_attributes(buffer: bytearray | memoryview, position: int, attributes: int) -> None:
    """Write other attributes into the batch at `position`, and renew its checksum."""
    size: int = LENGTH_OVERHEAD + _INT32.unpack_from(buffer, position + LENGTH_POSITION)[0]
    _INT16.pack_into(buffer, position + CHECKED_POSITION, attributes)
    _UINT32.pack_into(buffer, position + CRC_POSITION, compute_crc(buffer, position, size))


def assign_log_append_time(
    buffer: bytearray | memoryview, position: int, timestamp_ms: int
) -> None:
    """Stamp the batch at `position` as appended at `timestamp_ms`, and renew its checksum."""
    attributes: int = _INT16.unpack_from(buffer, position + CHECKED_POSITION)[0]
    _INT16.pack_into(buffer, position + CHECKED_POSITION, attributes | LOG_APPEND_TIME_BIT)
    assign_max_timestamp(buffer, position, timestamp_ms)


def assign_max_timestamp(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Correct the latest timestamp of the batch at `position`, and renew its checksum."""
    size: int = LENGTH_OVERHEAD + _INT32.unpack_from(buffer, position + 8)[0]
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_POSITION, timestamp_ms)
    _UINT32.pack_into(buffer, position + CRC_POSITION, compute_crc(buffer, position, size))
