"""lz4 frames, field by field: sound ones, and what some decoder or other does not take.

magic | flags | block sizes | content size? | dictionary id? | header checksum
blocks: size, highest bit set when stored | bytes | checksum?
end mark (0 as int32) | content checksum?
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import lz4.block  # type: ignore[import-untyped]

from tests.support.compressed_streams.xxhash import xxh32

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW_BYTES: Final = 64 << 10
STORED_BIT: Final = 1 << 31
END_MARK: Final = bytes(4)


@dataclass(frozen=True, slots=True)
class Lz4Frame:
    """Format of the frame or frames around some data; the defaults are a Java producer's."""

    magic: int = 0x184D2204
    version: int = 1
    independent: bool = True
    block_checksum: int | None = None
    """Added to the right checksum: 0 for the right one, None for no checksum."""
    content_size: int | None = None
    content_checksum: int | None = None
    reserved_flag: bool = False
    dictionary: int | None = None
    size_code: int = 4
    reserved_sizes: int = 0
    """Bits of the block size byte that must be 0."""
    header_checksum: int = 0
    checksum_of_magic: bool = False
    """The header checksum covers the magic too, as Kafka's did before message format 1."""
    stored: bool = False
    block_bytes: int = WINDOW_BYTES
    empty_block: bytes = b""
    """Put before the end mark."""
    end_mark: bytes = END_MARK
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
        if self.content_checksum is not None:
            checksum = _int32(xxh32(data) + self.content_checksum)
        blocks = b"".join(self._blocks(data))
        return self._header(len(data)) + blocks + self.empty_block + self.end_mark + checksum

    def _header(self, size: int) -> bytes:
        flags = self.version << 6 | self.independent << 5 | (self.block_checksum is not None) << 4
        flags |= (self.content_size is not None) << 3 | (self.content_checksum is not None) << 2
        flags |= self.reserved_flag << 1 | (self.dictionary is not None)
        described = bytes([flags, self.size_code << 4 | self.reserved_sizes])
        if self.content_size is not None:
            described += struct.pack("<Q", size + self.content_size & (1 << 64) - 1)
        if self.dictionary is not None:
            described += _int32(self.dictionary)
        magic = _int32(self.magic)
        covered = magic + described if self.checksum_of_magic else described
        return magic + described + bytes([(xxh32(covered) >> 8) + self.header_checksum & 0xFF])

    def _blocks(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), self.block_bytes):
            part = data[at : at + self.block_bytes]
            options: dict[str, Any] = {"store_size": False}
            if not self.independent and at:
                options["dict"] = data[max(0, at - WINDOW_BYTES) : at]
            packed = lz4.block.compress(part, **options)
            is_stored = self.stored or len(packed) >= len(part)
            content = part if is_stored else packed
            yield _int32(len(content) | is_stored * STORED_BIT) + content
            if self.block_checksum is not None:
                yield _int32(xxh32(content) + self.block_checksum)


def _int32(number: int) -> bytes:
    return struct.pack("<I", number & 0xFFFFFFFF)


def skippable(size: int, kind: int = 0) -> bytes:
    """A frame that decoders of lz4, and of zstd, pass over."""
    return struct.pack("<II", 0x184D2A50 + kind, size) + bytes(size)


def legacy(data: bytes) -> bytes:
    """A frame of the format that lz4 had before."""
    packed: bytes = lz4.block.compress(data, store_size=False)
    return struct.pack("<II", 0x184C2102, len(packed)) + packed


EMPTY: Final = Lz4Frame().wrap(b"")
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "one frame": {},
    "stored": {"stored": True},
    "256 KB blocks": {"size_code": 5, "block_bytes": 256 << 10},
    "1 MB blocks": {"size_code": 6, "block_bytes": 1 << 20},
    "4 MB blocks": {"size_code": 7, "block_bytes": 4 << 20},
    "small blocks": {"block_bytes": 100},
    "block size code 3": {"size_code": 3},
    "block size code 0": {"size_code": 0},
    "reserved size bit 0": {"reserved_sizes": 1},
    "reserved size bit 7": {"reserved_sizes": 0x80},
    "another magic": {"magic": 0x184D2205},
    "version 0": {"version": 0},
    "version 2": {"version": 2},
    "linked blocks": {"independent": False},
    "block checksums": {"block_checksum": 0},
    "wrong block checksums": {"block_checksum": 1},
    "content size": {"content_size": 0},
    "content size too large": {"content_size": 1},
    "content size too small": {"content_size": -1},
    "content checksum": {"content_checksum": 0},
    "wrong content checksum": {"content_checksum": 1},
    "reserved flag": {"reserved_flag": True},
    "dictionary 0": {"dictionary": 0},
    "dictionary 7": {"dictionary": 7},
    "wrong header checksum": {"header_checksum": 1},
    "header checksum over the magic": {"checksum_of_magic": True},
    "no end mark": {"end_mark": b""},
    "half an end mark": {"end_mark": bytes(2)},
    "empty stored block": {"empty_block": _int32(STORED_BIT)},
    "block of no data": {"empty_block": _int32(1) + b"\0"},
    "blocks larger than said": {"size_code": 4, "block_bytes": 200 << 10},
    "stored blocks larger than said": {"stored": True, "block_bytes": 200 << 10},
    "two frames": {"frames": 2},
    "five frames": {"frames": 5},
    "empty frame before": {"before": EMPTY},
    "empty frame after": {"after": EMPTY},
    "skippable frame before": {"before": skippable(4)},
    "skippable frame after": {"after": skippable(4, 15)},
    "legacy frame before": {"before": legacy(b"")},
    "legacy frame after": {"after": legacy(b"x")},
    "a byte after": {"after": b"\0"},
    "four zeros after": {"after": bytes(4)},
    "seven bytes after": {"after": b"garbage"},
    "magic after": {"after": _int32(0x184D2204)},
}
"""Streams that differ from an ordinary one in one respect each."""
