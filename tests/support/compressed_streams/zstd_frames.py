"""zstd frames, field by field: sound ones, and what some decoder or other does not take.

magic | descriptor | window? | dictionary id? | content size?
blocks: 3 bytes (last, type, size) | bytes
checksum? (the lower half of XXH64)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import zstandard

from tests.support.compressed_streams.lz4_frames import skippable
from tests.support.compressed_streams.xxhash import xxh64

MAGIC: Final = 0xFD2FB528
RAW, RLE, COMPRESSED, RESERVED = range(4)
LARGEST_BLOCK: Final = 128 << 10


@dataclass(frozen=True, slots=True)
class ZstdFrame:
    """Format of the frame or frames around some data; the defaults are a Java producer's."""

    magic: int = MAGIC
    window_log: int | None = 20
    """None makes the frame one segment, which has a content size instead."""
    mantissa: int = 0
    """Eighths of the window that are added to it."""
    content_size: int | None = None
    """Added to the right size; None for no content size."""
    size_bytes: int = 8
    dictionary: int | None = None
    dictionary_bytes: int = 1
    checksum: int | None = None
    reserved_bit: bool = False
    unused_bit: bool = False
    stored: bool = False
    block_bytes: int = LARGEST_BLOCK
    blocks_before: bytes = b""
    blocks_after: bytes = b""
    last_flag: bool = True
    checksum_bytes: int = 4
    frames: int = 1
    before: bytes = b""
    after: bytes = b""

    def wrap(self, data: bytes) -> bytes:
        """`data` as frames of this kind."""
        share = max(1, -(-len(data) // self.frames))
        parts = [data[at : at + share] for at in range(0, max(1, len(data)), share)]
        return self.before + b"".join(self._frame(part) for part in parts) + self.after

    def _frame(self, data: bytes) -> bytes:
        checksum = b""
        if self.checksum is not None:
            checksum = struct.pack("<I", xxh64(data) + self.checksum & 0xFFFFFFFF)
        blocks = self.blocks_before + (self._raw(data) if self.stored else _packed(data))
        if self.blocks_after or not self.last_flag:
            blocks = _without_last_flag(blocks) + self.blocks_after
        return self._header(len(data)) + blocks + checksum[: self.checksum_bytes]

    def _header(self, size: int) -> bytes:
        size_bytes = self.size_bytes if self.content_size is not None else 0
        size_flag = {0: 0, 1: 0, 2: 1, 4: 2, 8: 3}[size_bytes]
        id_bytes = self.dictionary_bytes if self.dictionary is not None else 0
        descriptor = size_flag << 6 | (self.window_log is None) << 5 | self.unused_bit << 4
        descriptor |= self.reserved_bit << 3 | (self.checksum is not None) << 2
        header = struct.pack("<IB", self.magic, descriptor | {0: 0, 1: 1, 2: 2, 4: 3}[id_bytes])
        if self.window_log is not None:
            header += bytes([self.window_log - 10 << 3 | self.mantissa])
        if self.dictionary is not None:
            header += self.dictionary.to_bytes(id_bytes, "little")
        if self.content_size is not None:
            stated = size + self.content_size - (256 if size_bytes == 2 else 0)
            header += (stated & (1 << 8 * size_bytes) - 1).to_bytes(size_bytes, "little")
        return header

    def _raw(self, data: bytes) -> bytes:
        starts = range(0, len(data), self.block_bytes)
        parts = [data[at : at + self.block_bytes] for at in starts] or [b""]
        blocks = [block(RAW, len(part)) + part for part in parts]
        last = len(parts) - 1
        return b"".join([*blocks[:last], block(RAW, len(parts[last]), True), parts[last]])


def block(kind: int, size: int, is_last: bool = False) -> bytes:
    """The header of a block."""
    return (size << 3 | kind << 1 | is_last).to_bytes(3, "little")


def _packed(data: bytes) -> bytes:
    """The blocks that the library makes of `data`."""
    parameters = zstandard.ZstdCompressionParameters(window_log=20, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    frame = compressor.compress(data)
    return frame[zstandard.frame_header_size(frame) :]


def _without_last_flag(blocks: bytes) -> bytes:
    position = 0
    while True:
        word = int.from_bytes(blocks[position : position + 3], "little")
        if word & 1:
            return blocks[:position] + bytes([blocks[position] & 0xFE]) + blocks[position + 1 :]
        position += 3 + (1 if word >> 1 & 3 == RLE else word >> 3)


EMPTY: Final = ZstdFrame(stored=True).wrap(b"")
EMPTY_SIZED: Final = ZstdFrame(stored=True, content_size=0, window_log=None, size_bytes=1).wrap(b"")
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "one frame": {},
    "stored": {"stored": True},
    "small blocks": {"stored": True, "block_bytes": 100},
    "blocks larger than allowed": {"stored": True, "block_bytes": LARGEST_BLOCK + 1},
    "blocks larger than the window": {"stored": True, "window_log": 10},
    "window 1 KB": {"stored": True, "window_log": 10, "block_bytes": 1 << 10},
    "window 8 MB": {"window_log": 23},
    "window 8 MB and an eighth": {"window_log": 23, "mantissa": 1},
    "window 16 MB": {"window_log": 24},
    "window 64 MB": {"window_log": 26},
    "window 128 MB": {"window_log": 27},
    "window 128 MB and an eighth": {"window_log": 27, "mantissa": 1},
    "window 256 MB": {"window_log": 28},
    "window 1 GB": {"window_log": 30},
    "window 2 GB": {"window_log": 31},
    "window 4 GB": {"window_log": 32},
    "window 2 TB": {"window_log": 41, "mantissa": 7},
    "one segment": {"window_log": None, "content_size": 0},
    "one segment, 4 bytes of size": {"window_log": None, "content_size": 0, "size_bytes": 4},
    "one segment, 1 byte of size": {"window_log": None, "content_size": 0, "size_bytes": 1},
    "one segment said to be 1 TB": {"window_log": None, "content_size": 1 << 40},
    "one segment said to be 200 MB": {"window_log": None, "content_size": 200 << 20},
    "content size": {"content_size": 0},
    "content size of 4 bytes": {"content_size": 0, "size_bytes": 4},
    "content size too large": {"content_size": 1},
    "content size too small": {"content_size": -1},
    "dictionary 0": {"dictionary": 0},
    "dictionary 0 in 4 bytes": {"dictionary": 0, "dictionary_bytes": 4},
    "dictionary 7": {"dictionary": 7},
    "checksum": {"checksum": 0},
    "wrong checksum": {"checksum": 1},
    "checksum cut": {"checksum": 0, "checksum_bytes": 3},
    "checksum missing": {"checksum": 0, "checksum_bytes": 0},
    "reserved bit": {"reserved_bit": True},
    "unused bit": {"unused_bit": True},
    "another magic": {"magic": MAGIC + 1},
    "magic of version 0.7": {"magic": MAGIC - 1},
    "magic of version 0.1": {"magic": 0x1EB52FFD},
    "no last block": {"last_flag": False},
    "empty raw block first": {"blocks_before": block(RAW, 0)},
    "empty raw block last": {"blocks_after": block(RAW, 0, is_last=True)},
    "empty RLE block first": {"blocks_before": block(RLE, 0) + b"x"},
    "empty compressed block first": {"blocks_before": block(COMPRESSED, 0)},
    "reserved block first": {"blocks_before": block(RESERVED, 0)},
    "two frames": {"frames": 2},
    "five frames": {"frames": 5},
    "two frames with content sizes": {"frames": 2, "content_size": 0},
    "empty frame before": {"before": EMPTY},
    "empty frame with its size before": {"before": EMPTY_SIZED},
    "empty frame after": {"after": EMPTY},
    "empty frame with its size after": {"after": EMPTY_SIZED},
    "skippable frame before": {"before": skippable(4)},
    "skippable frame after": {"after": skippable(4, 15)},
    "empty skippable frame after": {"after": skippable(0)},
    "skippable frame cut": {"after": skippable(4)[:-1]},
    "a byte after": {"after": b"\0"},
    "four zeros after": {"after": bytes(4)},
    "twenty bytes after": {"after": b"garbage" * 3},
    "magic after": {"after": struct.pack("<I", MAGIC)},
}
"""Streams that differ from an ordinary one in one respect each."""
