"""Recognises records as most producers send them, without key and headers, by comparing bytes.

Reading a record field by field takes a hundred steps in Python. But if a record has no key and no
headers, and its deltas are known, then its length leaves nothing open but the value:

    length 12   bytes  18  00  00  00  01  0e  ..7 bytes..  00
                length_┘   │   │   │   │   │                └ no headers
                attributes ┘   │   │   │   └ value of 12 - 5 = 7 bytes, its length included
                timestamp delta┘   │   └ no key
                  offset delta 0 ──┘

So the bytes before the value are made from the length once, kept, and compared in C. Any other
record is not an error: it is read field by field (`outline`).
"""

from __future__ import annotations

from typing import Final

from protocol.records.varints import HIGH_BIT, encode_varint

NOT_PLAIN: Final = -1
NULL_KEY: Final = b"\x01"
MAX_ROOM: Final = 8193
"""Largest size of a value and its length, while the length takes at most two bytes."""

_FIXED_BYTES: Final = 5
"""Attributes, two deltas of zero, no key, no headers."""

_ONE_BYTE_VALUE: Final = 63
_NO_HEAD: Final = b"\xff" * 12
"""Begins no record: a varint of all these bytes does not end."""

_firsts: dict[bytes, tuple[int, bytes]] = {}
"""By the first two bytes of a first record: its size, and its bytes up to the value. One entry for
each length below 8192 that was ever sent."""

_offsets: dict[int, bytes] = {}
"""Offset deltas below 8192 as varints."""

_heads: dict[int, bytes] = {}
"""By room, up to `MAX_ROOM`: no key, and the length of the value."""


def is_plain_first(body: bytes | bytearray, position: int) -> bool:
    """Return whether the record at `position`, ending within `body`, is plain, its deltas zero."""
    start = bytes(body[position : position + 2])
    size, head = _firsts.get(start) or _remember_first(start)
    return body.startswith(head, position) and not body[position + size - 1]


def plain_last_timestamp(body: bytes | bytearray, position: int, offset_delta: int) -> int:
    """Timestamp delta of the record that begins at `position` and ends `body`.

    NOT_PLAIN unless it is plain, its timestamp not before the batch's, its offset delta this one.
    """
    at = position + 2
    if body[position] >= HIGH_BIT:
        if body[position + 1] >= HIGH_BIT:
            return NOT_PLAIN
        at = position + 3
    timestamp = body[at]
    at += 1
    if timestamp >= HIGH_BIT:
        second = body[at]
        if second >= HIGH_BIT:
            return NOT_PLAIN
        timestamp = timestamp & 0x7F | second << 7
        at += 1
    offset = _offsets.get(offset_delta) or _remember_offset(offset_delta)
    room = len(body) - at - len(offset) - 2
    if timestamp & 1 or not 0 < room <= MAX_ROOM or body[-1]:
        return NOT_PLAIN
    head = _heads.get(room) or _remember_head(room)
    return timestamp >> 1 if body.startswith(offset + head, at) else NOT_PLAIN


def _remember_first(start: bytes) -> tuple[int, bytes]:
    low, second = start
    if low >= HIGH_BIT:
        low = low & 0x7F | second << 7
    length = low >> 1
    if low & 1 or not 0 < length - _FIXED_BYTES <= MAX_ROOM - _FIXED_BYTES:
        return 1, _NO_HEAD
    encoded = encode_varint(length)
    room = length - _FIXED_BYTES
    head = encoded + b"\0\0\0" + (_heads.get(room) or _remember_head(room))
    if not head.startswith(start):
        return 1, _NO_HEAD
    first = _firsts[start] = len(encoded) + length, head
    return first


def _remember_offset(delta: int) -> bytes:
    encoded = encode_varint(delta)
    if delta < MAX_ROOM:
        _offsets[delta] = encoded
    return encoded


def _remember_head(room: int) -> bytes:
    """No key, and the length of a value that fills `room` bytes with it."""
    if room == _ONE_BYTE_VALUE + 2:
        return _NO_HEAD  # 63 bytes have a length of one byte, 64 one of two
    value = room - 1 if room <= _ONE_BYTE_VALUE + 1 else room - 2
    head = _heads[room] = NULL_KEY + encode_varint(value)
    return head
