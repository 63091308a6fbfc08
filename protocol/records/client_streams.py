"""Check that all clients can read a compressed stream that could be decompressed here.

The formats allow more than Kafka's clients accept: `kafka-clients` and librdkafka read one lz4
frame, librdkafka one gzip member and one xerial stream of snappy, and what follows is lost or an
error. A batch of such a stream would end every consumer of its partition. Only headers are looked
at, and the sizes of blocks followed; nothing but the first byte of gzip is decompressed again.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from protocol.errors import ApiError, ErrorCode
from protocol.records.compression import (
    PIECES_AT_ONCE,
    XERIAL_MAGIC,
    Codec,
    decompress,
    is_in_many_pieces,
)

GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
SIZE_BITS: Final = 0xFFFFFFFF
XERIAL_HEADER_BYTES: Final = 16
LONGEST_SIZE_BYTES: Final = 5
"""Longest varint before raw snappy, in bytes."""
HIGH_BIT: Final = 0x80

LZ4_FLAGS_AT: Final = 4
LZ4_INDEPENDENT: Final = 0x20
LZ4_BLOCK_CHECKSUMS: Final = 0x10
LZ4_CONTENT_SIZE: Final = 0x08
LZ4_CONTENT_CHECKSUM: Final = 0x04
LZ4_DICTIONARY: Final = 0x01
LZ4_HEADER_BYTES: Final = 7
CONTENT_SIZE_BYTES: Final = 8
SIZE_BYTES: Final = 4
"""Size of a block's length, and of a checksum."""
LZ4_LENGTH: Final = (1 << 31) - 1
LZ4_EMPTY_BLOCKS: Final = {1 << 31, 1}
"""Sizes of blocks that hold nothing: stored, and compressed. kafka-clients 2.8 fails on the latter.
"""

ZSTD_SKIPPABLE: Final = range(0x184D2A50, 0x184D2A60)
SKIPPABLE_HEADER_BYTES: Final = 8
ZSTD_ONE_SEGMENT: Final = 0x20
ZSTD_CHECKSUM: Final = 0x04
ZSTD_DESCRIPTOR_AT: Final = 4
ZSTD_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
ZSTD_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
ZSTD_REPEATED, ZSTD_COMPRESSED = 1, 2

_size = struct.Struct("<I").unpack_from
_xerial_size = struct.Struct(">i").unpack_from


class ManyPiecesError(Exception):
    """The stream consists of more pieces than can be followed quickly."""


def decompress_readable(
    codec: Codec, data: memoryview, limit: int, *, is_hurried: bool
) -> bytes | bytearray:
    """Decompress `data`, at most `limit` bytes, if all clients can read it.

    Raises ApiError, INVALID_RECORD if some cannot; ManyPiecesError only if `is_hurried`.
    """
    if is_hurried and is_in_many_pieces(codec, data):
        raise ManyPiecesError
    body = decompress(codec, data, limit)
    most_blocks = PIECES_AT_ONCE if is_hurried else len(data)
    reason = None
    if codec is Codec.LZ4:
        reason = _lz4_fault(data, most_blocks)
    elif codec is Codec.ZSTD:
        reason = _zstd_fault(data, most_blocks)
    elif codec is Codec.SNAPPY:
        reason = _snappy_fault(data)
    elif codec is Codec.GZIP:
        reason = _gzip_fault(data, len(body))
    if reason is not None:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"consumers cannot read the records ({codec.name}): {reason}"
        )
    return body


def _gzip_fault(data: memoryview, size: int) -> str | None:
    """Find several members: the last one's size differs from the total, unless others are empty."""
    (last,) = _size(data, len(data) - SIZE_BYTES)
    if last != size & SIZE_BITS:
        return f"the last member holds {last} of {size} bytes; one member may hold all"
    try:
        is_first_empty = not zlib.decompressobj(GZIP_FORMAT).decompress(data, 1)
    except zlib.error as error:
        return str(error)
    return "an empty member comes first; one member may hold all" if is_first_empty else None


def _snappy_fault(data: memoryview) -> str | None:
    if data[: len(XERIAL_MAGIC)].tobytes() != XERIAL_MAGIC:
        if all(byte >= HIGH_BIT for byte in data[:LONGEST_SIZE_BYTES]):
            return f"the size in front has more than {LONGEST_SIZE_BYTES} bytes"
        return None
    position, end = XERIAL_HEADER_BYTES, len(data)
    while position < end:
        (length,) = _xerial_size(data, position)
        if length < 0:  # of the chunks' lengths none is; it is the magic
            return f"another stream begins at byte {position}"
        position += SIZE_BYTES + length
    return None


def _lz4_fault(data: memoryview, most_blocks: int) -> str | None:
    flags = data[LZ4_FLAGS_AT]
    if not flags & LZ4_INDEPENDENT:  # KIP-57
        return "the blocks of the frame depend on each other"
    if flags & LZ4_DICTIONARY:
        return "the frame names a dictionary"
    position = LZ4_HEADER_BYTES + (CONTENT_SIZE_BYTES if flags & LZ4_CONTENT_SIZE else 0)
    overhead = 2 * SIZE_BYTES if flags & LZ4_BLOCK_CHECKSUMS else SIZE_BYTES
    blocks = 0
    (mark,) = _size(data, position)
    while mark:
        blocks += 1
        if blocks > most_blocks:
            raise ManyPiecesError
        if mark in LZ4_EMPTY_BLOCKS:
            return f"the block at byte {position} is empty"
        position += overhead + (mark & LZ4_LENGTH)
        (mark,) = _size(data, position)
    position += 2 * SIZE_BYTES if flags & LZ4_CONTENT_CHECKSUM else SIZE_BYTES
    if position != len(data):
        return f"{len(data) - position} bytes follow the first frame; one frame may hold all"
    return None


def _zstd_fault(data: memoryview, most_blocks: int) -> str | None:
    """An empty block that is marked as compressed: librdkafka refuses it, and it alone."""
    position, blocks = 0, 0
    while position < len(data):
        (magic,) = _size(data, position)
        if magic in ZSTD_SKIPPABLE:
            position += SKIPPABLE_HEADER_BYTES + _size(data, position + SIZE_BYTES)[0]
            continue
        descriptor = data[position + ZSTD_DESCRIPTOR_AT]
        position += _zstd_header_bytes(descriptor)
        header = 0
        while not header & 1:  # the last block is marked
            blocks += 1
            if blocks > most_blocks:
                raise ManyPiecesError
            header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
            kind, length = header >> 1 & 3, header >> 3
            if kind == ZSTD_COMPRESSED and not length:
                return f"the block at byte {position} is compressed and empty"
            position += 3 + (1 if kind == ZSTD_REPEATED else length)
        position += SIZE_BYTES if descriptor & ZSTD_CHECKSUM else 0
    return None


def _zstd_header_bytes(descriptor: int) -> int:
    one_byte = 1  # of window, or of the content size of a frame without a window
    if descriptor & ZSTD_ONE_SEGMENT and descriptor >> 6:
        one_byte = 0
    sizes = ZSTD_DICTIONARY_BYTES[descriptor & 3] + ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6]
    return ZSTD_DESCRIPTOR_AT + 1 + one_byte + sizes
