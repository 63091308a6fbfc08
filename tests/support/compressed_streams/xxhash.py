"""xxHash (32 and 64 bits, seed 0), for the checksums of lz4 and zstd frames."""

from __future__ import annotations

from typing import Final, NamedTuple


class _Width(NamedTuple):
    bits: int
    primes: tuple[int, int, int, int, int]
    rotations: tuple[int, int, int, int]
    """Rotations of the four lanes when they are added up."""
    round_rotation: int


_32: Final = _Width(
    32, (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1), (1, 7, 12, 18), 13
)
_64: Final = _Width(
    64,
    (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    ),
    (1, 7, 12, 18),
    31,
)


def xxh32(data: bytes) -> int:
    """The hash of 32 bits."""
    hash_, position = _lanes(data, _32)
    one, two, three, four, five = _32.primes
    mask = (1 << 32) - 1
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        hash_ = _rotated(hash_ + word * three & mask, 17, 32) * four & mask
        position += 4
    for byte in data[position:]:
        hash_ = _rotated(hash_ + byte * five & mask, 11, 32) * one & mask
    hash_ = (hash_ ^ hash_ >> 15) * two & mask
    hash_ = (hash_ ^ hash_ >> 13) * three & mask
    return hash_ ^ hash_ >> 16


def xxh64(data: bytes) -> int:
    """The hash of 64 bits."""
    hash_, position = _lanes(data, _64)
    one, two, three, four, five = _64.primes
    mask = (1 << 64) - 1
    while position + 8 <= len(data):
        word = int.from_bytes(data[position : position + 8], "little")
        hash_ = (_rotated(hash_ ^ _round(0, word, _64), 27, 64) * one + four) & mask
        position += 8
    if position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        hash_ = (_rotated(hash_ ^ word * one & mask, 23, 64) * two + three) & mask
        position += 4
    for byte in data[position:]:
        hash_ = _rotated(hash_ ^ byte * five & mask, 11, 64) * one & mask
    hash_ = (hash_ ^ hash_ >> 33) * two & mask
    hash_ = (hash_ ^ hash_ >> 29) * three & mask
    return hash_ ^ hash_ >> 32


def _lanes(data: bytes, width: _Width) -> tuple[int, int]:
    """Return the hash of the whole stripes of four words, and the position behind them."""
    mask = (1 << width.bits) - 1
    size = width.bits // 8
    one, two, _, _, five = width.primes
    stripes = len(data) // (4 * size)
    if not stripes:
        return five + len(data) & mask, 0
    lanes = [one + two & mask, two, 0, -one & mask]
    for position in range(0, stripes * 4 * size, size):
        lane = position // size % 4
        word = int.from_bytes(data[position : position + size], "little")
        lanes[lane] = _round(lanes[lane], word, width)
    rotated = zip(lanes, width.rotations, strict=True)
    hash_ = sum(_rotated(lane, by, width.bits) for lane, by in rotated) & mask
    if width.bits == 64:
        for lane in lanes:
            hash_ = ((hash_ ^ _round(0, lane, width)) * one + width.primes[3]) & mask
    return hash_ + len(data) & mask, stripes * 4 * size


def _round(lane: int, word: int, width: _Width) -> int:
    mask = (1 << width.bits) - 1
    mixed = lane + word * width.primes[1] & mask
    return _rotated(mixed, width.round_rotation, width.bits) * width.primes[0] & mask


def _rotated(word: int, by: int, bits: int) -> int:
    return (word << by | word >> bits - by) & (1 << bits) - 1
