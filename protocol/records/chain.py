"""Check that a body holds exactly the records its header counts, without reading the records.

Each record begins with its own length, so the records form a chain: the first length says where
the second record is, and so on. `last_record` follows that chain and checks that the declared
number of records ends exactly at the end of the body.

Following it one record at a time costs about 40 ns each in Python. Most batches hold records of one
size, though, and then the lengths stand at a constant stride, which slices can check in C:

    body      16 ........ 16 ........ 16 ........ 18 ......... 18 .........
    position  0           12          24          36           49
    body[0::12] = 16 16 16 18 ...     the first three bytes agree, so the first three records
                                      are sound and the fourth begins at 3 * 12

If the length at 0 is 11 bytes (16 as a zig-zag varint is 0x16), then the next length must stand at
12; if the byte there is the same, the one after stands at 24, and so on: the run of equal bytes at
that stride is a run of records, whatever else the body holds. Lengths from 64 to 8191 take two
bytes, so two slices are compared. Where runs are short, records are followed one by one.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final

from protocol.records.record import MIN_RECORD_BYTES, invalid
from protocol.records.varints import read_varint

SHORT_RUN: Final = 12
"""Shorter runs cost more than they save: the walk then goes on record by record for a while."""

FIRST_PATIENCE: Final = 32
"""Records followed one by one after a short run; doubled after each further one."""

FIRST_WINDOW: Final = 64
"""Records looked at by one slice: from the 64th on offset deltas take a byte more. Four times as
many while whole windows agree, so that no body is walked in time that grows with its square."""

_HIGH_BIT: Final = 0x80
_PAST_EVERYTHING: Final = 1 << 62
"""Step that stands for a length that is negative or too small: no body is so long."""


def last_record(body: bytes | bytearray, count: int, position: int = 0) -> int:
    """Position of the last of the `count` > 0 records that fill `body` from `position` to its end.

    Raises ApiError(INVALID_RECORD) unless they do, exactly.
    """
    left = count
    patience = FIRST_PATIENCE
    window = FIRST_WINDOW
    end = position
    try:
        while left > 0:
            limit = left if left < window else window  # noqa: FURB136 - the call costs more
            run, stride = _run(body, end, limit)
            if run:
                left -= run
                end += run * stride
                position = end - stride
                window = window * 4 if run == window else FIRST_WINDOW
            if run < SHORT_RUN and left > 0:
                singles = min(left, patience)
                position = _follow(body, end, singles - 1)
                end = _follow(body, position, 1)
                left -= singles
                patience *= 2
    except IndexError:
        raise invalid(
            f"the batch counts {count} records, but its {len(body)} bytes end before the last"
        ) from None
    if end != len(body):
        raise invalid(
            f"the batch counts {count} records, but {len(body) - end} bytes follow the last"
            if end < len(body)
            else f"the last of {count} records passes the end, or its length is impossible"
        )
    return position


def _run(body: bytes | bytearray, position: int, limit: int) -> tuple[int, int]:
    """Return the number of records of equal length, at most `limit`, at `position`; and the stride.

    No records when the length takes neither one byte nor two: `_follow` deals with those.
    """
    low = body[position]
    if low < _HIGH_BIT:
        stride = _STEP_OF_ONE[low]
        column = body[position : position + limit * stride : stride]
        first = column[:1]
        if column == first * limit:  # five times as fast as stripping
            return limit, stride
        return len(column) - len(column.lstrip(first)), stride
    second = position + 1
    high = _STEP_OF_HIGH[body[second]]
    stride = _STEP_OF_TWO[low] + high
    if not high or stride >= _PAST_EVERYTHING:
        return 0, 0
    lows = body[position : position + limit * stride : stride]
    highs = body[second : second + limit * stride : stride]
    low_bytes, high_bytes = lows[:1], highs[:1]
    if lows == low_bytes * limit and highs == high_bytes * limit:
        return limit, stride
    return min(
        len(lows) - len(lows.lstrip(low_bytes)), len(highs) - len(highs.lstrip(high_bytes))
    ), stride


def _follow(body: bytes | bytearray, position: int, count: int) -> int:
    """Position after the `count` records that begin at `position`, record by record."""
    for _ in repeat(None, count):
        low = body[position]
        if low < _HIGH_BIT:
            position += _STEP_OF_ONE[low]
        else:
            high = _STEP_OF_HIGH[body[position + 1]]
            if high:
                position += _STEP_OF_TWO[low] + high
            else:
                position = _follow_long(body, position)
    return position


def _follow_long(body: bytes | bytearray, position: int) -> int:
    length, start = read_varint(body, position)
    if length < MIN_RECORD_BYTES:
        raise invalid(f"the record at byte {position} claims {length} bytes after its length")
    return start + length


_STEP_OF_ONE: Final = [
    byte // 2 + 1 if byte % 2 == 0 and byte >= MIN_RECORD_BYTES * 2 else _PAST_EVERYTHING
    for byte in range(_HIGH_BIT)
]
"""From one record to the next when its length is this one byte."""

_STEP_OF_TWO: Final = [
    (byte - _HIGH_BIT) // 2 + 2 if byte % 2 == 0 and byte >= _HIGH_BIT else _PAST_EVERYTHING
    for byte in range(256)
]
"""The same for the first of two bytes, without the share of the second."""

_STEP_OF_HIGH: Final = [byte << 6 if byte < _HIGH_BIT else 0 for byte in range(256)]
"""Share of the second of two bytes; 0 for more than two bytes, or where one would have done."""
