"""XXH3, the hash of 64 bits, without a seed; as its specification has it.

Apache Kafka stores it with a group, over the topics that the group subscribes to (KIP-1101). Any
other hash would have each of the two rebalance all groups that the other one has written.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK32: Final = 0xFFFF_FFFF
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_PRIME32_1: Final = 0x9E37_79B1
_PRIME32_2: Final = 0x85EB_CA77
_PRIME32_3: Final = 0xC2B2_AE3D
_PRIME64_1: Final = 0x9E37_79B1_85EB_CA87
_PRIME64_2: Final = 0xC2B2_AE3D_27D4_EB4F
_PRIME64_3: Final = 0x1656_67B1_9E37_79F9
_PRIME64_4: Final = 0x85EB_CA77_C2B2_AE63
_PRIME64_5: Final = 0x27D4_EB2F_1656_67C5
_PRIME_MX1: Final = 0x1656_6791_9E37_79F9
_PRIME_MX2: Final = 0x9FB2_1C65_1E98_DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_SECRET_WORDS: Final = struct.unpack_from("<24Q", _SECRET)

_STRIPE_BYTES: Final = 64
_STRIPES_PER_BLOCK: Final = 16
_SHORT, _MEDIUM, _LONG = 16, 128, 240
"""Inputs up to these lengths have formulas of their own."""

_LAST_OFFSET: Final = 119
"""Offset of the secret for the last bytes of 129 to 240."""


def _words(offset: int, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}Q", _SECRET, offset)


_BLOCK_END: Final = _words(128, 8)
_LAST_STRIPE: Final = _words(121, 8)
_MERGE: Final = _words(11, 8)
_FIRST: Final = (
    *(_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3),
    *(_PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1),
)


def xxh3_64(data: bytes) -> int:
    """The hash, as an unsigned number. About 8 microseconds for 100 bytes, 40 per KB."""
    length = len(data)
    if length <= _SHORT:
        return _hash_short(data, length)
    if length <= _MEDIUM:
        return _hash_medium(data, length)
    if length <= _LONG:
        return _hash_longer(data, length)
    return _hash_stripes(data, length)


def _hash_short(data: bytes, length: int) -> int:
    if length > 8:  # noqa: PLR2004 - a boundary of the specification, as those below
        key = _words(24, 4)
        low = int.from_bytes(data[:8], "little") ^ key[0] ^ key[1]
        high = int.from_bytes(data[-8:], "little") ^ key[2] ^ key[3]
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(length + swapped + high + _fold(low, high))
    if length >= 4:  # noqa: PLR2004
        key = _words(8, 2)
        first = int.from_bytes(data[:4], "little")
        last = int.from_bytes(data[-4:], "little")
        return _rrmxmx((last + (first << 32) & _MASK) ^ key[0] ^ key[1], length)
    if length:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        flip = int.from_bytes(_SECRET[:4], "little") ^ int.from_bytes(_SECRET[4:8], "little")
        return _avalanche_64(combined ^ flip)
    key = _words(56, 2)
    return _avalanche_64(key[0] ^ key[1])


def _hash_medium(data: bytes, length: int) -> int:
    total = length * _PRIME64_1
    for place in range((length - 1) // 32 + 1):
        total += _mix(data, 16 * place, 32 * place)
        total += _mix(data, length - 16 * (place + 1), 32 * place + 16)
    return _avalanche(total)


def _hash_longer(data: bytes, length: int) -> int:
    total = length * _PRIME64_1
    for place in range(8):
        total += _mix(data, 16 * place, 16 * place)
    total = _avalanche(total)
    for place in range(8, length // 16):
        total += _mix(data, 16 * place, 16 * (place - 8) + 3)
    return _avalanche(total + _mix(data, length - 16, _LAST_OFFSET))


def _hash_stripes(data: bytes, length: int) -> int:
    sums = list(_FIRST)
    stripes = (length - 1) // _STRIPE_BYTES
    for stripe in range(stripes):
        place = stripe % _STRIPES_PER_BLOCK
        words = struct.unpack_from("<8Q", data, stripe * _STRIPE_BYTES)
        _accumulate(sums, words, _SECRET_WORDS[place : place + 8])
        if place == _STRIPES_PER_BLOCK - 1:
            sums = [
                ((each ^ each >> 47 ^ key) * _PRIME32_1) & _MASK
                for each, key in zip(sums, _BLOCK_END, strict=True)
            ]
    last = struct.unpack_from("<8Q", data, length - _STRIPE_BYTES)
    _accumulate(sums, last, _LAST_STRIPE)
    total = length * _PRIME64_1
    for pair in range(0, 8, 2):
        total += _fold(sums[pair] ^ _MERGE[pair], sums[pair + 1] ^ _MERGE[pair + 1])
    return _avalanche(total)


def _accumulate(sums: list[int], words: tuple[int, ...], key: tuple[int, ...]) -> None:
    for lane in range(8):
        word = words[lane]
        keyed = word ^ key[lane]
        sums[lane ^ 1] = (sums[lane ^ 1] + word) & _MASK
        sums[lane] = (sums[lane] + (keyed & _MASK32) * (keyed >> 32)) & _MASK


def _mix(data: bytes, offset: int, secret_offset: int) -> int:
    low, high = struct.unpack_from("<2Q", data, offset)
    key_low, key_high = struct.unpack_from("<2Q", _SECRET, secret_offset)
    return _fold(low ^ key_low, high ^ key_high)


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ product >> 64


def _avalanche(value: int) -> int:
    value &= _MASK
    value ^= value >> 37
    value = value * _PRIME_MX1 & _MASK
    return value ^ value >> 32


def _avalanche_64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64_2 & _MASK
    value ^= value >> 29
    value = value * _PRIME64_3 & _MASK
    return value ^ value >> 32


def _rrmxmx(value: int, length: int) -> int:
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = value * _PRIME_MX2 & _MASK
    value ^= (value >> 35) + length
    value = value * _PRIME_MX2 & _MASK
    return value ^ value >> 28


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
