"""The hash, beside what hash4j, the library that Apache Kafka uses, makes of the same bytes."""

from __future__ import annotations

import pytest

from coordinator.xxh3 import xxh3_64

# Length, and the hash of the bytes 3, 10, 17, … of that length.
HASHES = {
    0: 0x2D06800538D394C2,
    1: 0x13E608BC156DEFED,
    3: 0xA9088DDA485B481C,
    4: 0x6D9253B16C8B1ED3,
    8: 0x60539DB630471163,
    9: 0xFEFF668361D723A8,
    16: 0xB8C859B0F030B585,
    17: 0x714A04408E79B80F,
    32: 0x19FF4EE1D6BA1A55,
    33: 0x3E44983AD21679C8,
    64: 0x287EB1FA9E4BE2C1,
    65: 0x829218DE4D798646,
    96: 0xF084E7CFBC624743,
    97: 0x1DAA83271A8E7B7C,
    128: 0x67425A03650261BF,
    129: 0xC664BF3311C6ABC4,
    143: 0x8B313780705AF3A7,
    144: 0x606A17FA700BB932,
    160: 0xD70DEA8DE694B883,
    239: 0x1D861931C1F3CAFA,
    240: 0x64556DC6B462A6CF,
    241: 0x8BEADD3A8874FE17,
    256: 0x3C38817F6D79C0DA,
    512: 0xF58202B8D9019D1D,
    1024: 0x9B81661C641C72B1,
    1025: 0x806C2072ED713576,
    2048: 0xABE604813BA62ED1,
    5000: 0x799AADDD7339581D,
}


@pytest.mark.parametrize("length", HASHES)
def test_hash_is_the_one_that_apache_computes(length: int) -> None:
    data = bytes((index * 7 + 3) % 256 for index in range(length))
    assert xxh3_64(data) == HASHES[length]
