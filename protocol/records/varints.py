"""Zig-zag varints of records, as Protocol Buffers have them: small magnitudes take few bytes.

Value n is sent as 2n when it is not negative and as -2n - 1 when it is, seven bits to a byte, least
significant first, with the high bit set on all bytes but the last. Lengths are at most 5 bytes
(int32), timestamp deltas at most 10 (int64). A longer one is refused, as in Apache Kafka.
"""

from __future__ import annotations

from typing import Final

from protocol.errors import ApiError, ErrorCode

HIGH_BIT: Final = 0x80
INT32_SHIFT: Final = 28
INT64_SHIFT: Final = 63
INT64_BITS: Final = (1 << 64) - 1


def read_varint(buffer: bytes | bytearray, position: int) -> tuple[int, int]:
    """An int32 varint and the position after it. IndexError when the buffer ends first."""
    raw = buffer[position]
    if raw < HIGH_BIT:
        return (raw >> 1) ^ -(raw & 1), position + 1
    second = buffer[position + 1]
    if second < HIGH_BIT:
        raw = raw & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    return _rest(buffer, position, INT32_SHIFT)


def read_varlong(buffer: bytes | bytearray, position: int) -> tuple[int, int]:
    """An int64 varint and the position after it. IndexError when the buffer ends first."""
    raw = buffer[position]
    if raw < HIGH_BIT:
        return (raw >> 1) ^ -(raw & 1), position + 1
    second = buffer[position + 1]
    if second < HIGH_BIT:
        raw = raw & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    return _rest(buffer, position, INT64_SHIFT)


def _rest(buffer: bytes | bytearray, position: int, last_shift: int) -> tuple[int, int]:
    """A varint of three bytes and more, or one that does not end."""
    raw = 0
    for shift in range(0, last_shift + 1, 7):
        byte = buffer[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < HIGH_BIT:
            # Bits past the width of the type are dropped, as the Java reader's shifts drop them.
            raw &= (1 << 32) - 1 if last_shift == INT32_SHIFT else INT64_BITS
            return (raw >> 1) ^ -(raw & 1), position
    raise ApiError(
        ErrorCode.INVALID_RECORD, f"a varint before byte {position} of the records does not end"
    )


def encode_varint(value: int) -> bytes:
    """Varint of a value that fits int64."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    if raw < HIGH_BIT:
        return _ONE_BYTE[raw]
    out = bytearray()
    while raw >= HIGH_BIT:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


_ONE_BYTE: Final = [bytes([raw]) for raw in range(0x80)]
