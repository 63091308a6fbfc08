"""Primitives of the wire format that compiled codecs call, and what goes wrong in them.

Varints are those of Protocol Buffers; `uvarint` is unsigned (lengths, tags), `varint` is zig-zag.
Sources: the Kafka protocol guide, KIP-482 (flexible versions, tagged fields).
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from protocol.uuids import ZERO_UUID

CONTINUES = 0x80
"""Set in each byte of a varint but the last."""

MAX_UVARINT_SHIFT = 28
MAX_UVARINT = 0xFFFFFFFF
INTERNED_UUIDS_LIMIT = 100_000
"""Topic ids remembered as UUID objects; past it the table is emptied and fills anew."""

_uuids: dict[bytes, UUID] = {ZERO_UUID.bytes: ZERO_UUID}


class DecodeError(ValueError):
    """Bytes that are not a valid message; the text names message, version and what was wrong."""


class SizedRegion(Protocol):
    """Bytes that stand elsewhere (a region of a file) and are sent where records go."""

    def __len__(self) -> int: ...


Buffer = bytes | bytearray | memoryview


def uvarint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose `first` byte (at `position - 1`) had its high bit set.

    Returns the value and the position after it. At most five bytes, value below 2^32.
    """
    value = first & 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < CONTINUES:
            if value > MAX_UVARINT:
                raise DecodeError("varint does not fit in 32 bits")
            return value, position
        shift += 7
        if shift > MAX_UVARINT_SHIFT:
            raise DecodeError("varint is longer than 5 bytes")


def encode_uvarint(value: int) -> bytes:
    """Unsigned varint of `value` >= 0."""
    if value < CONTINUES:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= CONTINUES:
        out.append((value & 0x7F) | CONTINUES)
        value >>= 7
    out.append(value)
    return bytes(out)


def intern_uuid(raw: bytes) -> UUID:
    """UUID of 16 raw bytes: the same object for the same bytes, as making one takes a while."""
    found = _uuids.get(raw)
    if found is None:
        if len(_uuids) >= INTERNED_UUIDS_LIMIT:
            _uuids.clear()
        found = _uuids[raw] = UUID(bytes=raw)
    return found


_ONE_BYTE = [bytes([value]) for value in range(CONTINUES)]
