"""Position and key of each record of a batch, and whether its value is null.

For look-ups of records by key: values and headers are neither copied nor read. Compaction reads
many batches at once instead (`storage.compaction.columns.record_columns`). Most batches have runs
of records that differ in their bytes only, not in the lengths of their fields, so what holds for
the first of them holds for all:

    body      |24 00 0x 0x 06 k k k .....|24 00 0x 0x 06 k k k .....|24 00 ...
    stride     <------------------------>
    columns    ^ lengths, all the same    ^                          ^
                     ^ no delta takes more bytes
                           ^ key lengths, all the same

Columns are slices with a stride and are compared in C, so that a record of a run takes a tenth of
a microsecond. Where runs are short, and in batches that were compacted before, records are
followed one by one, at half a microsecond each; `iterate_records` takes three.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.record import MIN_RECORD_BYTES, invalid
from protocol.records.varints import read_varint

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader

SHORT_RUN: Final = 8
"""Shorter runs cost more than they save: the walk then goes on record by record for a while."""
FIRST_PATIENCE: Final = 16
"""Records followed one by one after a short run; doubled after each further one."""

_HIGH_BIT: Final = 0x80
_HIGH_BYTES: Final = bytes(range(_HIGH_BIT, 256))
_NULL: Final = 1
"""The varint of length -1."""
_ZIG_ZAG: Final = [byte >> 1 if byte & 1 == 0 else -(byte >> 1) - 1 for byte in range(_HIGH_BIT)]


class RecordSpans(NamedTuple):
    """All records of a batch, as columns."""

    starts: list[int]
    """Position in the body at which each record begins, and the one before ends."""
    ends: list[int]
    keys: list[bytes | None]
    offset_deltas: list[int]
    is_null: list[bool]
    """True if the value is null: a tombstone, if the record has a key."""


def record_spans(body: bytes, header: BatchHeader) -> RecordSpans:
    """The records of `header` that fill `body`, which is not compressed (any more).

    Raises ApiError(INVALID_RECORD) unless they fill it exactly and each holds its own key.
    """
    spans = RecordSpans([], [], [], [], [])
    count = header.record_count
    has_all_offsets = header.last_offset_delta == count - 1
    position, patience = 0, FIRST_PATIENCE
    try:
        while (left := count - len(spans.ends)) > 0:
            end = _take_run(body, position, left, spans) if has_all_offsets else position
            if end == position:
                taken = min(left, patience) if has_all_offsets else left
                end = _take_singly(body, position, taken, spans)
                patience *= 2
            position = end
    except IndexError:
        raise invalid(f"record {len(spans.ends)} of {count} is cut off") from None
    if position != len(body):
        raise invalid(f"{count} records end at byte {position} of {len(body)}")
    return spans


def _take_singly(body: bytes, start: int, count: int, spans: RecordSpans) -> int:
    """Follow `count` records; returns where the last ends."""
    add_start, add_end, add_key = spans.starts.append, spans.ends.append, spans.keys.append
    add_delta, add_null = spans.offset_deltas.append, spans.is_null.append
    for _ in repeat(None, count):
        byte = body[start]
        length, at = (_ZIG_ZAG[byte], start + 1) if byte < _HIGH_BIT else read_varint(body, start)
        end = at + length
        at += 1  # attributes
        while body[at] >= _HIGH_BIT:  # timestamp delta
            at += 1
        at += 1
        byte = body[at]
        delta, at = (_ZIG_ZAG[byte], at + 1) if byte < _HIGH_BIT else read_varint(body, at)
        byte = body[at]
        size, at = (_ZIG_ZAG[byte], at + 1) if byte < _HIGH_BIT else read_varint(body, at)
        key_end = at + size if size >= 0 else at
        if key_end >= end or delta < 0 or length < MIN_RECORD_BYTES:
            raise invalid(f"the record at byte {start} has an impossible length or offset")
        add_start(start)
        add_end(end)
        add_key(body[at:key_end] if size >= 0 else None)
        add_delta(delta)
        add_null(body[key_end] == _NULL)
        start = end
    return start


def _take_run(body: bytes, start: int, left: int, spans: RecordSpans) -> int:
    """Take the records from `start` on that are laid out alike; returns where the last ends.

    None is taken when they are not worth it.
    """
    one = RecordSpans([], [], [], [], [])
    end = _take_singly(body, start, 1, one)
    stride = end - start
    stop = start + min(left, (len(body) - start) // stride) * stride
    layout = _Layout(body, start)
    lengths = body[start:stop:stride]
    count = len(lengths) - len(lengths.lstrip(lengths[:1]))
    stop = start + count * stride
    if count < SHORT_RUN or not layout.holds_for(body, stop, stride):
        return start
    key = one.keys[0]
    if key is None:
        spans.keys.extend([None] * count)
    else:
        size = len(key)
        spans.keys.extend([body[at : at + size] for at in range(layout.key_start, stop, stride)])
    sizes_of_values = body[layout.key_start + len(key or b"") : stop : stride]
    spans.is_null.extend([byte == _NULL for byte in sizes_of_values])
    spans.offset_deltas.extend(range(len(spans.starts), len(spans.starts) + count))
    spans.starts.extend(range(start, stop, stride))
    spans.ends.extend(range(end, stop + 1, stride))
    return stop


class _Layout:
    """Positions of the fields of one record, up to its key."""

    __slots__ = ("_key_size_start", "_start", "_timestamp_start", "key_start")

    def __init__(self, body: bytes, start: int) -> None:
        self._start = start
        _, at = read_varint(body, start)
        self._timestamp_start = at + 1
        at = _after_varint(body, _after_varint(body, at + 1))
        self._key_size_start = at
        self.key_start = _after_varint(body, at)

    def holds_for(self, body: bytes, stop: int, stride: int) -> bool:
        """Return whether the records up to `stop`, one each `stride`, share this layout.

        Lengths must be the same bytes; of the deltas, each byte must be the last of its varint or
        not, as in the first record.
        """
        for start, end in (
            (self._start + 1, self._timestamp_start - 1),
            (self._key_size_start, self.key_start),
        ):
            for at in range(start, end):
                column = body[at:stop:stride]
                if column != column[:1] * len(column):
                    return False
        for at in range(self._timestamp_start, self._key_size_start):
            column = body[at:stop:stride]
            ends_here = body[at] < _HIGH_BIT
            if not (column.isascii() if ends_here else not column.translate(None, _HIGH_BYTES)):
                return False
        return True


def _after_varint(body: bytes, position: int) -> int:
    while body[position] >= _HIGH_BIT:
        position += 1
    return position + 1
