"""An lz4 frame of incompressible data: its blocks are the data, uncompressed.

A compressor stores data without repetitions (pictures, archives, random text) uncompressed, block
by block. Reading it needs no library, whose decompressor costs fifteen times as much.

    magic 04 22 4D 18 | flags | block size | header checksum | blocks | 0 as int32
    block   its size as a little-endian int32, highest bit set when it is stored | bytes
"""

from __future__ import annotations

import struct
from typing import Final

LARGEST_BLOCKS: Final = {
    b"\x04\x22\x4d\x18\x60\x40\x82": 64 << 10,
    b"\x04\x22\x4d\x18\x60\x50\xfb": 256 << 10,
    b"\x04\x22\x4d\x18\x60\x60\x51": 1 << 20,
    b"\x04\x22\x4d\x18\x60\x70\x73": 4 << 20,
}
"""The headers, their checksum included, of frames as Kafka's clients make them: independent blocks
without checksums, no size in front; and how large a block may be."""

MOST_BLOCKS: Final = 100
"""A frame of more is left to the library: a client may make 200,000 of a megabyte, a byte each."""
HEADER_BYTES: Final = 7
SIZE_BYTES: Final = 4
STORED_BIT: Final = 1 << 31

_unpack_size = struct.Struct("<I").unpack_from


def stored_blocks(frame: memoryview) -> bytes | None:
    """The data of a frame of stored blocks only; None when `frame` is anything else."""
    largest = LARGEST_BLOCKS.get(frame[:HEADER_BYTES].tobytes())
    position = HEADER_BYTES + SIZE_BYTES
    length = len(frame)
    if largest is None or length < position:
        return None
    data = b""
    blocks = 0
    (mark,) = _unpack_size(frame, HEADER_BYTES)
    while mark:
        size = mark - STORED_BIT
        following = position + size
        blocks += 1
        if not 0 < size <= largest or following + SIZE_BYTES > length or blocks > MOST_BLOCKS:
            return None
        block = frame[position:following].tobytes()
        data = data + block if data else block
        (mark,) = _unpack_size(frame, following)
        position = following + SIZE_BYTES
    return data if position == length else None
