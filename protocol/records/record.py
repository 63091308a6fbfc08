"""The records inside a batch, one at a time.

Used where single records matter: offsets by timestamp, compaction, the coordinators' logs. The
paths of Produce and Fetch only read the header of a batch (see `chain` for the check).

Layout of one record, all numbers varints (KIP-98):

    length            bytes that follow
    attributes        one byte, unused
    timestamp_delta   to the batch's base_timestamp
    offset_delta      to the batch's base_offset
    key               length (-1: null) and bytes
    value             length (-1: null) and bytes
    headers           count, then for each: name (length, UTF-8) and value (length or -1, bytes)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import HEADER_BYTES, BatchHeader, parse_header
from protocol.records.compression import DEFAULT_LIMIT, Codec, decompress
from protocol.records.varints import read_varint, read_varlong
from protocol.wire import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.wire import Buffer

Header = tuple[str, bytes | None]

MIN_RECORD_BYTES: Final = 6
"""Attributes, two deltas, two lengths and the count of headers, one byte each."""

MIN_HEADER_BYTES: Final = 2
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1


class Record(NamedTuple):
    """One record as a client sees it, with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


_make_record = Record._make

RecordFields = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
"""Timestamp delta, offset delta, key, value and headers of a record in its batch."""


def iterate_records(batch: Buffer, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
    """Every record of one whole batch, in order, decompressed to at most `limit` bytes.

    Compacted batches give the records that are left, under their own offsets. Raises ApiError:
    INVALID_RECORD for a damaged record or a wrong count in the header, and the errors of
    `decompress`. The checksum is not checked.
    """
    header = parse_header(batch)
    body = record_bytes(batch, header, limit)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    position = 0
    for _ in range(header.record_count):
        (timestamp, offset, key, value, headers), position = parse_record(body, position)
        timestamp = base_timestamp + timestamp if append_time is None else append_time
        if not INT64_MIN <= timestamp <= INT64_MAX:
            raise invalid(f"timestamp {timestamp} does not fit in 64 bits")
        yield _make_record((base_offset + offset, timestamp, key, value, headers))
    if position != len(body):
        raise invalid(
            f"{len(body) - position} bytes follow the {header.record_count} records of the batch"
        )


def record_bytes(
    batch: Buffer, header: BatchHeader, limit: int = DEFAULT_LIMIT
) -> bytes | bytearray:
    """The records of one whole batch as they stand before compression; a copy."""
    compressed = memoryview(batch)[HEADER_BYTES : header.size_in_bytes]
    codec = header.codec
    return compressed.tobytes() if codec is Codec.NONE else decompress(codec, compressed, limit)


def parse_record(body: bytes | bytearray, position: int) -> tuple[RecordFields, int]:
    """The record at `position`, and the position after it.

    Raises ApiError(INVALID_RECORD) unless its fields fill exactly the length it claims.
    """
    try:
        length, start = read_varint(body, position)
        end = start + length
        if length < MIN_RECORD_BYTES or end > len(body):
            raise invalid(
                f"the record at byte {position} of {len(body)} claims {length} more bytes"
            )
        timestamp_delta, at = read_varlong(body, start + 1)
        offset_delta, at = read_varint(body, at)
        key, at = _read_bytes(body, at, end)
        value, at = _read_bytes(body, at, end)
        headers: tuple[Header, ...] = ()
        if body[at] == 0:
            at += 1
        else:
            headers, at = _read_headers(body, at, end)
    except IndexError:
        raise invalid(f"the record at byte {position} is cut off") from None
    if at != end:
        raise invalid(
            f"the record at byte {position} claims {length} bytes, its fields take {at - start}"
        )
    return (timestamp_delta, offset_delta, key, value, headers), end


def parse_headers(data: bytes, count: int) -> tuple[Header, ...]:
    """The `count` headers that fill `data`; ApiError(INVALID_RECORD) unless they do."""
    try:
        headers, at = _headers(data, 0, len(data), count)
    except IndexError:
        raise invalid("a header is cut off") from None
    if at != len(data):
        raise invalid(f"{count} headers end before byte {len(data)}")
    return headers


def invalid(message: str) -> ApiError:
    """INVALID_RECORD, not yet raised."""
    return ApiError(ErrorCode.INVALID_RECORD, message)


def _read_bytes(body: bytes | bytearray, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(body, at)
    if length < 0:
        return None, at
    stop = at + length
    if stop > end:
        raise invalid(f"a field of {length} bytes at byte {at} passes the end of its record")
    return bytes(body[at:stop]), stop


def _read_headers(body: bytes | bytearray, at: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, at = read_varint(body, at)
    if not 0 <= count * MIN_HEADER_BYTES <= end - at:
        raise invalid(f"{count} headers cannot stand in the {end - at} bytes left of the record")
    return _headers(body, at, end, count)


def _headers(
    body: bytes | bytearray, at: int, end: int, count: int
) -> tuple[tuple[Header, ...], int]:
    headers = []
    for _ in range(count):
        name, at = _read_bytes(body, at, end)
        value, at = _read_bytes(body, at, end)
        if name is None:
            raise invalid("a header has no name")
        headers.append((text_of(name), value))
    return tuple(headers), at
