"""A record as it stands in its waiting batch, with its fields left as they are.

What is delivered is the same record with more headers, so that nothing of it needs to be taken
apart: key and value are copied in one piece, and so are its headers, in whatever bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.outline import outline_record
from protocol.records.varints import encode_varint, read_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.record import Header

_NO_ATTRIBUTES: Final = b"\x00"
_NULL: Final = encode_varint(-1)


class StoredRecord(NamedTuple):
    """One that was found sound when it was received."""

    offset: int
    """Offset at which it waited."""
    timestamp: int
    """Timestamp set by its producer."""
    fields: bytes
    """Key and value, each after its length."""
    header_count: int
    headers: bytes
    """Names and values, each after its length."""


class DueRecord(NamedTuple):
    """A record to be delivered now."""

    due_ms: int
    record: StoredRecord


def stored_record(
    body: bytes | bytearray, position: int, base_timestamp: int, offset: int
) -> StoredRecord:
    """The record at `position`; ApiError(INVALID_RECORD) if it is damaged."""
    end, timestamp_delta, _, key_at, headers_at = outline_record(body, position)
    count, at = read_varint(body, headers_at)
    fields, headers = bytes(body[key_at:headers_at]), bytes(body[at:end])
    return StoredRecord(offset, base_timestamp + timestamp_delta, fields, count, headers)


def encode_headers(headers: Sequence[Header]) -> bytes:
    """Headers as they stand in a record, without their count."""
    parts: list[bytes] = []
    for name, value in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_NULL,) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)


def encode_due(due: DueRecord, place: tuple[int, int], count: int, added: bytes) -> bytes:
    """Encode a record for delivery, with its due time and `count` headers `added` to its own.

    `place` is its offset delta and the base timestamp of its batch.
    """
    due_ms, (_, _, fields, header_count, headers) = due
    offset_delta, base_timestamp = place
    content = b"".join(
        (
            _NO_ATTRIBUTES,
            encode_varint(due_ms - base_timestamp),
            encode_varint(offset_delta),
            fields,
            encode_varint(header_count + count),
            headers,
            added,
        )
    )
    return encode_varint(len(content)) + content
