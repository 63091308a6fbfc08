"""Compression of the records of a batch: gzip, snappy, lz4 and zstd, by the Rust library cramjam.

Decompression is bounded: a batch of 1 MB can stand for many gigabytes, so `decompress` is given the
most it may produce and never allocates more than that (and a fixed small first guess). It can also
consist of 200,000 pieces of a byte each, which take a second, whatever they produce: a caller in a
hurry checks `is_in_many_pieces` first.

Requirements of Java's codecs that differ from the formats' own defaults:

- snappy is framed by xerial's stream: the 8 bytes of `XERIAL_MAGIC`, version and least compatible
  version (int32 each), then blocks, each an int32 length and a raw snappy block of 32 KB of input.
  A stream without that header is one raw block; several streams may stand one after the other.
- lz4 is the frame format with independent blocks: the Java reader refuses linked ones.

A producer may send less than `decompress` reads: see `client_streams`.
"""

from __future__ import annotations

import enum
import struct
from itertools import islice
from typing import TYPE_CHECKING, Final

import cramjam

from protocol.errors import ApiError, ErrorCode
from protocol.records.lz4_stored import stored_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.wire import Buffer


class Codec(enum.IntEnum):
    """Compression codec of the records of a batch: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DEFAULT_LIMIT: Final = 64 * 1024 * 1024
"""Limit of the decompressed size of one batch, in bytes, for callers without a limit of their
own."""

FIRST_GUESS_BYTES: Final = 32 * 1024
"""Room for the output that is always made available: it saves a second try for small batches."""

GUESSED_RATIO: Final = 6
GROWTH: Final = 8
LARGE_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(LARGE_BYTES)

LZ4_LEVEL: Final = 1
LZ4_FAST: Final = 9
LZ4_LOWEST_HIGH: Final = 3
LZ4_HIGHEST: Final = 12
XERIAL_BLOCK_BYTES: Final = 32 * 1024

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
PIECES_AT_ONCE: Final = 100
"""Blocks of snappy, members of gzip or frames of zstd: one takes up to 20 microseconds. Clients
make one member or frame, and blocks of 32 KB."""
_BEGINNINGS: Final = {
    Codec.GZIP: b"\x1f\x8b\x08",
    Codec.SNAPPY: XERIAL_MAGIC,
    Codec.ZSTD: b"\x28\xb5\x2f\xfd",
}
"""First bytes of each member, stream or frame; rare in compressed data."""
_INT32: Final = struct.Struct(">i")
_GZIP_SIZE: Final = struct.Struct("<I")
_FULL: Final = "failed to write whole buffer"
"""Message of cramjam's error when the output does not fit; a test holds it to that."""

_DECOMPRESS_INTO: Final[dict[Codec, Callable[[Buffer, bytearray], int]]] = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the form that Kafka's clients expect of `codec`; without `level`, at its usual one.

    Levels are Kafka's: gzip 1 to 9, lz4 1 to 17, zstd up to 22; snappy has none.
    """
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data, level))
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            frame = cramjam.lz4.Compressor(
                level=_lz4_level(level), content_checksum=False, block_linked=False
            )
            frame.compress(bytes(data))  # the one function that takes no other buffer
            return bytes(frame.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level))


def _lz4_level(level: int | None) -> int:
    """Level 9, the default, is the fast compressor in Kafka; all others are the high one."""
    if level in {None, LZ4_FAST}:
        return LZ4_LEVEL
    assert level is not None
    return min(max(level, LZ4_LOWEST_HIGH), LZ4_HIGHEST)


def decompress(codec: Codec, data: Buffer, limit: int = DEFAULT_LIMIT) -> bytes | bytearray:
    """Decompress `data`, at most `limit` bytes.

    Raises ApiError: MESSAGE_TOO_LARGE past the limit, INVALID_RECORD when `data` is damaged.
    """
    if codec is Codec.NONE:
        return bytes(data)
    try:
        if codec is Codec.SNAPPY:
            return _decompress_snappy(data, limit)
        if codec is Codec.LZ4:
            stored = stored_blocks(memoryview(data))
            if stored is not None and len(stored) <= limit:
                return stored
        return _decompress_growing(codec, data, limit)
    except cramjam.DecompressionError as error:
        raise _damaged(codec, str(error)) from error


def is_in_many_pieces(codec: Codec, data: memoryview) -> bool:
    """Return whether `data` has more pieces than can quickly be decompressed one by one.

    Raises ApiError INVALID_RECORD for damage it comes across.
    """
    beginning = _BEGINNINGS.get(codec)
    if beginning is None:
        return False
    whole = data.tobytes()
    if whole.count(beginning) > PIECES_AT_ONCE:
        return True
    if codec is not Codec.SNAPPY or not whole.startswith(beginning):
        return False
    return any(True for _ in islice(_xerial_blocks(data), PIECES_AT_ONCE, None))


def _damaged(codec: Codec, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_RECORD, f"the records cannot be decompressed ({codec.name}): {reason}"
    )


def _too_large(codec: Codec, limit: int) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the records decompress ({codec.name}) to more than {limit} bytes",
    )


def _decompress_growing(codec: Codec, data: Buffer, limit: int) -> bytearray:
    """Try with room that grows by `GROWTH`: these formats may lack the decompressed size."""
    into = _DECOMPRESS_INTO[codec]
    room = min(limit, _first_guess(codec, data))
    while True:
        output = _zeroed(room)
        try:
            written = into(data, output)
        except cramjam.DecompressionError as error:
            if str(error) != _FULL:
                raise
            if room >= limit:
                raise _too_large(codec, limit) from None
            room = min(limit, room * GROWTH)
        else:
            del output[written:]
            return output


def _zeroed(size: int) -> bytearray:
    """Room, zeroed piece by piece.

    `bytearray(size)` holds the interpreter all the while, and with it the event loop: for 100 ms
    and more when it is 100 MB.
    """
    room = bytearray(size % LARGE_BYTES)
    for _ in range(size // LARGE_BYTES):
        room += _ZEROS
    return room


def _first_guess(codec: Codec, data: Buffer) -> int:
    if codec is Codec.GZIP and len(data) >= _GZIP_SIZE.size:
        # The last four bytes are the size modulo 2^32: a hint, since a client may write anything.
        hint: int = _GZIP_SIZE.unpack_from(data, len(data) - _GZIP_SIZE.size)[0]
        return min(max(hint, FIRST_GUESS_BYTES), len(data) * 1100)
    return max(FIRST_GUESS_BYTES, len(data) * GUESSED_RATIO)


def _compress_xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit: int) -> bytes:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _decompress_block(data, limit, limit)
    parts = []
    room = limit
    for block in _xerial_blocks(memoryview(data)):
        part = _decompress_block(block, room, limit)
        room -= len(part)
        parts.append(part)
    return b"".join(parts)


def _xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    position = 0
    end = len(data)
    while position < end:
        if bytes(data[position : position + len(XERIAL_MAGIC)]) == XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        start = position + _INT32.size
        length: int = _INT32.unpack_from(data, position)[0] if start <= end else -1
        position = start + length
        if length < 0 or position > end:
            raise _damaged(Codec.SNAPPY, f"block of {length} bytes at byte {start} of {end}")
        yield data[start:position]


def _decompress_block(block: Buffer, room: int, limit: int) -> bytes:
    # Checked before the block is decompressed, because the library allocates the size it claims.
    if cramjam.snappy.decompress_raw_len(block) > room:
        raise _too_large(Codec.SNAPPY, limit)
    return bytes(cramjam.snappy.decompress_raw(block))
