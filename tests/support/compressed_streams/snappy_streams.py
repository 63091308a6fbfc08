"""snappy, raw and in xerial's framing: sound streams, and what some decoder does not take.

82 'SNAPPY' 00 | version int32 | least compatible version int32 | chunks
chunk: length int32 | raw snappy: length of the data (varint), literals and copies
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import cramjam

MAGIC: Final = b"\x82SNAPPY\x00"


@dataclass(frozen=True, slots=True)
class SnappyStream:
    """Format of the stream around some data; the defaults are a Java producer's."""

    is_raw: bool = False
    magic: bytes = MAGIC
    version: int = 1
    least_version: int = 1
    byte_order: str = ">"
    chunk_bytes: int = 32 << 10
    literals_only: bool = False
    length_padding: bytes = b""
    """Bytes of each chunk's varint that add nothing to it."""
    claimed: int = 0
    """Added to each chunk's own length."""
    after_chunk: bytes = b""
    """Inside each chunk."""
    empty_chunk: bytes = b""
    """Put between the chunks."""
    header_again: bool = False
    before: bytes = b""
    after: bytes = b""

    def wrap(self, data: bytes) -> bytes:
        """`data` as a stream of this kind."""
        if self.is_raw:
            return self.before + self._raw(data) + self.after
        versions = struct.pack(f"{self.byte_order}ii", self.version, self.least_version)
        header = self.magic + versions
        chunks = []
        for at in range(0, len(data), self.chunk_bytes):
            raw = self._raw(data[at : at + self.chunk_bytes])
            chunks.append(struct.pack(">i", len(raw)) + raw)
        between = self.empty_chunk + (header if self.header_again else b"")
        return self.before + header + between.join([b"", *chunks, b""]) + self.after

    def _raw(self, data: bytes) -> bytes:
        length = _varint(len(data) + self.claimed)
        if self.length_padding:
            length = length[:-1] + bytes([length[-1] | 0x80]) + self.length_padding
        return length + self._elements(data) + self.after_chunk

    def _elements(self, data: bytes) -> bytes:
        if self.literals_only:
            pieces = (data[at : at + 60] for at in range(0, len(data), 60))
            return b"".join(bytes([len(piece) - 1 << 2]) + piece for piece in pieces)
        return bytes(cramjam.snappy.compress_raw(data))[len(_varint(len(data))) :]


def _varint(number: int) -> bytes:
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def _chunk(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "xerial": {},
    "literals only": {"literals_only": True},
    "chunks of a byte": {"chunk_bytes": 1},
    "chunks of 100 bytes": {"chunk_bytes": 100},
    "chunks of 64 KB": {"chunk_bytes": 64 << 10},
    "chunks of 1 MB": {"chunk_bytes": 1 << 20},
    "version 0": {"version": 0},
    "version 2": {"version": 2},
    "version -1": {"version": -1},
    "least version 0": {"least_version": 0},
    "least version 2": {"least_version": 2},
    "little-endian versions": {"byte_order": "<"},
    "another magic": {"magic": b"\x82SNAPPY\x01"},
    "padded length": {"length_padding": b"\0"},
    "length too large": {"claimed": 1},
    "length too small": {"claimed": -1},
    "byte after each chunk": {"after_chunk": b"\0"},
    "chunk without a byte": {"empty_chunk": _chunk(b"")},
    "chunk of no data": {"empty_chunk": _chunk(b"\0")},
    "header before each chunk": {"header_again": True},
    "another stream after": {"after": MAGIC + struct.pack(">ii", 1, 1)},
    "a byte before": {"before": b"\0"},
    "a byte after": {"after": b"\0"},
    "three bytes after": {"after": bytes(3)},
    "four zeros after": {"after": bytes(4)},
    "length -1 after": {"after": struct.pack(">i", -1)},
    "a chunk cut off": {"after": struct.pack(">i", 100) + b"cut"},
    "half a header after": {"after": MAGIC + bytes(4)},
    "magic after": {"after": MAGIC},
    "raw": {"is_raw": True},
    "raw, literals only": {"is_raw": True, "literals_only": True},
    "raw, padded length": {"is_raw": True, "length_padding": b"\0"},
    "raw, length padded to six bytes": {"is_raw": True, "length_padding": b"\x80\x80\x80\0"},
    "raw, length too large": {"is_raw": True, "claimed": 1},
    "raw, length too small": {"is_raw": True, "claimed": -1},
    "raw, a byte after": {"is_raw": True, "after": b"\0"},
    "raw, an empty one after": {"is_raw": True, "after": b"\0\0"},
    "raw, a xerial stream after": {"is_raw": True, "after": MAGIC + struct.pack(">ii", 1, 1)},
}
"""Streams that differ from an ordinary one in one respect each."""
