"""Batches whose records wait in the log until they are delivered.

A waiting batch is a control batch of one record, which every client skips, as it skips the end of a
transaction. It takes as many offsets as there are records inside, so that each of these has its
own, and its header has producer, epoch and sequence numbers of the batch inside: for the state of
producers, and for one that sends it again, it is that batch.

    header      attributes: control, delay, transactional as inside
                last_offset_delta, producer_id, producer_epoch, base_sequence: as inside
                base_timestamp, max_timestamp: time of receipt
    key         version 0 and type, two int16; librdkafka takes no longer key
    value       version (int16), time of receipt (int64), count (int32), one int64 for each record
                (`delay_headers`), then the batch as its producer sent it

A cancellation has the same form and another type. Its value ends after the numbers, which are the
offsets of records that are not to be delivered.

The batches of delivered records are ordinary ones (`delivered_batch`). All three have the delay
bit, which no client uses or looks at, so that logs know them by their headers.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import (
    CONTROL_BIT,
    DELAY_BIT,
    HEADER_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
    replace_records,
)
from protocol.records.builder import NewRecord, encode_record
from protocol.records.record import invalid, parse_record
from protocol.records.varints import read_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.wire import Buffer

WAITING: Final = 0x4444
CANCELLED: Final = 0x4445

KEY: Final = struct.Struct(">hh")
_KEY_VERSION: Final = 0
_VERSION: Final = 1
_VALUE: Final = struct.Struct(">hqi")
_NUMBER = struct.Struct(">q")
_NUMBER_BYTES: Final = _NUMBER.size
FRONT_BYTES: Final = HEADER_BYTES + 64
"""Bytes from the start of a batch that always hold everything before the numbers."""
_KEY_ENDS: Final = 13
"""Largest end of the key, from the header: five bytes of length, four of fields, the key."""
_CANCELLED_KEY: Final = b"\x08" + KEY.pack(_KEY_VERSION, CANCELLED)
"""Key of a cancellation with its length, a varint."""


class WaitingBatch(NamedTuple):
    """Contents of a waiting batch, or of a cancellation, whose `inner` is empty."""

    type: int
    received_ms: int
    numbers: tuple[int, ...]
    """Times of delivery as in `delay_headers`, or offsets of cancelled records."""
    inner: memoryview
    """The producer's batch."""


class WaitingFront(NamedTuple):
    """Contents of a waiting batch before the numbers."""

    type: int
    received_ms: int
    records: int
    numbers_at: int
    """Position of the numbers in the batch."""

    def number_at(self, index: int) -> tuple[int, int]:
        """Return the position of a number in the batch, and its size."""
        return self.numbers_at + index * _NUMBER_BYTES, _NUMBER_BYTES


def build_waiting(
    batch: Buffer, header: BatchHeader, times: Sequence[int], now_ms: int
) -> bytearray:
    """The waiting batch around the sound one that fills `batch`."""
    return _build(header, (WAITING, times, now_ms), batch)


def build_cancellation(header: BatchHeader, offsets: Sequence[int], now_ms: int) -> bytearray:
    """Build the batch that cancels delivery of the records at `offsets`, in place of `header`'s."""
    return _build(header, (CANCELLED, offsets, now_ms), b"")


def parse_waiting(batch: Buffer) -> WaitingBatch:
    """Parse a control batch with the delay bit; ApiError(INVALID_RECORD) for any other batch."""
    header = parse_header(batch)
    body = memoryview(batch)[HEADER_BYTES : header.size_in_bytes].tobytes()
    (_, _, key, value, _), _ = parse_record(body, 0)
    if key is None or value is None or len(key) != KEY.size or len(value) < _VALUE.size:
        raise invalid("a waiting batch has no type in its key, or nothing in its value")
    version, received_ms, count = _VALUE.unpack_from(value)
    end = _VALUE.size + count * _NUMBER_BYTES
    if version != _VERSION or count < 0 or end > len(value):
        raise invalid(f"a waiting batch of version {version} claims {count} records")
    numbers = struct.unpack_from(f">{count}q", value, _VALUE.size)
    return WaitingBatch(KEY.unpack(key)[1], received_ms, numbers, memoryview(value)[end:])


def parse_front(front: bytes) -> WaitingFront:
    """Parse the first FRONT_BYTES of a batch; ApiError(INVALID_RECORD) for any other batch."""
    try:
        position = read_varint(front, HEADER_BYTES)[1] + 1
        for _ in range(2):  # timestamp delta and offset delta
            position = read_varint(front, position)[1]
        length, position = read_varint(front, position)
        if length != KEY.size:
            raise invalid("a waiting batch has no type in its key")
        _, kind = KEY.unpack_from(front, position)
        position = read_varint(front, position + length)[1]
        version, received_ms, count = _VALUE.unpack_from(front, position)
    except (IndexError, struct.error):
        raise invalid("a waiting batch ends before its numbers") from None
    if version != _VERSION or count < 0:
        raise invalid(f"a waiting batch of version {version} claims {count} records")
    return WaitingFront(kind, received_ms, count, position + _VALUE.size)


def parse_number(data: Buffer) -> int:
    """The number that stands at `WaitingFront.number_at`."""
    number: int = _NUMBER.unpack(data)[0]
    return number


def is_cancellation(batch: Buffer) -> bool:
    """Return whether a control batch with the delay bit cancels; cheaper than `parse_waiting`."""
    return _CANCELLED_KEY in bytes(memoryview(batch)[HEADER_BYTES : HEADER_BYTES + _KEY_ENDS])


def _build(
    header: BatchHeader, content: tuple[int, Sequence[int], int], inner: Buffer
) -> bytearray:
    kind, numbers, now_ms = content
    head = _VALUE.pack(_VERSION, now_ms, len(numbers))
    value = b"".join((head, struct.pack(f">{len(numbers)}q", *numbers), inner))
    record = NewRecord(now_ms, KEY.pack(_KEY_VERSION, kind), value)
    attributes = CONTROL_BIT | DELAY_BIT | header.attributes & TRANSACTIONAL_BIT
    outer = header._replace(
        attributes=attributes, base_timestamp=now_ms, max_timestamp=now_ms, record_count=1
    )
    return replace_records(outer, encode_record(record, 0, now_ms))
