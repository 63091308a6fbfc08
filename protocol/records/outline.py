"""Outline of a record, without its contents, for the validation of produced batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.records.record import INT64_MAX, MIN_HEADER_BYTES, MIN_RECORD_BYTES, invalid
from protocol.records.varints import HIGH_BIT, read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Callable

NULL_LENGTH = 1
"""-1 as a varint."""

TURN_HEADERS: Final = 10_000
"""Headers that are followed between two pauses."""

RecordOutline = tuple[int, int, int, int, int]
"""Position after the record, timestamp delta, offset delta, and where two of its fields begin: the
length of the key, which `has_key` looks at, and the count of headers.

A plain tuple, as one is made for each record of a batch on a compacted topic.
"""


class ManyHeadersError(Exception):
    """The record has more headers than its reader follows now: each takes as long as a record."""


def outline_record(
    body: bytes | bytearray,
    position: int,
    most_headers: int = INT64_MAX,
    pause: Callable[[], object] | None = None,
) -> RecordOutline:
    """Outline of the record at `position`, every length in it followed; about 1 us.

    `pause` is called now and then if that takes long. Raises ApiError(INVALID_RECORD) unless its
    fields fill exactly the length it claims, and ManyHeadersError.
    """
    try:
        # Varints of one byte are read in place: most are, and a call costs more than they do.
        raw = body[position]
        if raw < HIGH_BIT:
            length, start = (raw >> 1) ^ -(raw & 1), position + 1
        else:
            length, start = read_varint(body, position)
        end = start + length
        if length < MIN_RECORD_BYTES or end > len(body):
            raise invalid(
                f"the record at byte {position} of {len(body)} claims {length} more bytes"
            )
        raw = body[start + 1]
        if raw < HIGH_BIT:
            timestamp_delta, at = (raw >> 1) ^ -(raw & 1), start + 2
        else:
            timestamp_delta, at = read_varlong(body, start + 1)
        raw = body[at]
        if raw < HIGH_BIT:
            offset_delta, at = (raw >> 1) ^ -(raw & 1), at + 1
        else:
            offset_delta, at = read_varint(body, at)
        key_at = at
        raw = body[at]
        if raw == NULL_LENGTH:
            key_length, at = -1, at + 1
        else:
            key_length, at = read_varint(body, at)
        value_length, at = read_varint(body, at + key_length if key_length > 0 else at)
        if value_length > 0:
            at += value_length
        headers_at = at
        at = at + 1 if body[at] == 0 else _skip_headers(body, at, end, most_headers, pause)
    except IndexError:
        raise invalid(f"the record at byte {position} is cut off") from None
    if at != end:
        raise invalid(
            f"the record at byte {position} claims {length} bytes, its fields take {at - start}"
        )
    return end, timestamp_delta, offset_delta, key_at, headers_at


def has_key(body: bytes | bytearray, key_at: int) -> bool:
    """Return whether the key whose length is at `key_at` is not null."""
    return read_varint(body, key_at)[0] >= 0


def header_count(body: bytes | bytearray, headers_at: int) -> int:
    """Return the number of headers of a record whose header count is at `headers_at`."""
    return read_varint(body, headers_at)[0]


def _skip_headers(
    body: bytes | bytearray, at: int, end: int, most: int, pause: Callable[[], object] | None
) -> int:
    count, at = read_varint(body, at)
    if not 0 <= count * MIN_HEADER_BYTES <= end - at:
        raise invalid(f"{count} headers cannot stand in the {end - at} bytes left of the record")
    if count > most:
        raise ManyHeadersError
    for number in range(count):
        if number % TURN_HEADERS == TURN_HEADERS - 1 and pause is not None:
            pause()
        name_length, at = read_varint(body, at)
        if name_length < 0:
            raise invalid("a header has no name")
        value_length, at = read_varint(body, at + name_length)
        if value_length > 0:
            at += value_length
        if at > end:
            raise invalid("a header passes the end of its record")
    return at
