"""Where each record of a batch stands, its key, and whether its value is null.

For compaction, which looks at every record of a log and decides by the key alone: values and
headers are neither copied nor read. The loop has no call in it for a record of usual sizes and
takes half a microsecond; `iterate_records` takes three.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final, NamedTuple

from protocol.records.record import MIN_RECORD_BYTES, invalid
from protocol.records.varints import read_varint

_HIGH_BIT: Final = 0x80
_NULL: Final = 1
"""The varint of length -1."""


class RecordSpans(NamedTuple):
    """All records of a batch, as columns."""

    ends: list[int]
    """Where each record ends in the body, and the next begins."""
    keys: list[bytes | None]
    offset_deltas: list[int]
    is_null: list[bool]
    """Whether the value is null: a tombstone, if there is a key."""


def record_spans(body: bytes, count: int) -> RecordSpans:
    """The `count` records that fill `body`, which is not compressed (any more).

    Raises ApiError(INVALID_RECORD) unless they fill it exactly and each holds its own key.
    """
    spans = RecordSpans([], [], [], [])
    try:
        end = _walk(body, count, spans)
    except IndexError:
        raise invalid(f"record {len(spans.ends)} of {count} is cut off") from None
    if end != len(body):
        raise invalid(f"{count} records end at byte {end} of {len(body)}")
    return spans


def _walk(body: bytes, count: int, spans: RecordSpans) -> int:
    add_end, add_key = spans.ends.append, spans.keys.append
    add_delta, add_null = spans.offset_deltas.append, spans.is_null.append
    start = 0
    for _ in repeat(None, count):
        byte = body[start]
        length, at = (_ZIG_ZAG[byte], start + 1) if byte < _HIGH_BIT else read_varint(body, start)
        end = at + length
        if length < MIN_RECORD_BYTES:
            raise invalid(f"the record at byte {start} claims {length} bytes")
        at += 1  # attributes
        while body[at] >= _HIGH_BIT:  # timestamp delta
            at += 1
        at += 1
        byte = body[at]
        delta, at = (_ZIG_ZAG[byte], at + 1) if byte < _HIGH_BIT else read_varint(body, at)
        byte = body[at]
        length, at = (_ZIG_ZAG[byte], at + 1) if byte < _HIGH_BIT else read_varint(body, at)
        if length >= 0:
            add_key(body[at : at + length])
            at += length
        else:
            add_key(None)
        if at >= end or delta < 0:
            raise invalid(f"the record at byte {start} has an impossible offset or key")
        add_delta(delta)
        add_null(body[at] == _NULL)
        add_end(end)
        start = end
    return start


_ZIG_ZAG: Final = [byte >> 1 if byte & 1 == 0 else -(byte >> 1) - 1 for byte in range(_HIGH_BIT)]
