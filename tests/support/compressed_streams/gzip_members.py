"""gzip members, field by field: sound ones, and what some decoder or other does not take.

1F 8B | method | flags | mtime | extra flags | system | FEXTRA? | FNAME? | FCOMMENT? | FHCRC?
deflated data | CRC-32 | size modulo 2^32
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, Final

FTEXT: Final = 1
FHCRC: Final = 2
FEXTRA: Final = 4
FNAME: Final = 8
FCOMMENT: Final = 16


@dataclass(frozen=True, slots=True)
class GzipMember:
    """Format of the member or members around some data; the defaults are a Java producer's."""

    magic: bytes = b"\x1f\x8b"
    method: int = 8
    flags: int = 0
    mtime: int = 0
    extra_flags: int = 0
    system: int = 0
    extra: bytes = b"AB\2\0xy"
    name: bytes = b"name"
    comment: bytes = b"comment"
    header_crc: int = 0
    """Added to the right checksum."""
    level: int = 6
    flush: int | None = None
    """Flush mode half way through the data."""
    deflated: bytes = b""
    """Put before the deflated data: whole blocks."""
    cut: int = 0
    """Bytes of the deflated data that are missing at its end."""
    after_deflated: bytes = b""
    crc: int = 0
    size: int = 0
    trailer_bytes: int = 8
    members: int = 1
    before: bytes = b""
    after: bytes = b""

    def wrap(self, data: bytes) -> bytes:
        """`data` as members of this kind."""
        share = max(1, -(-len(data) // self.members))
        parts = [data[at : at + share] for at in range(0, max(1, len(data)), share)]
        return self.before + b"".join(self._member(part) for part in parts) + self.after

    def _member(self, data: bytes) -> bytes:
        deflate = zlib.compressobj(self.level, zlib.DEFLATED, -zlib.MAX_WBITS)
        half = len(data) // 2
        deflated = self.deflated + deflate.compress(data[:half])
        if self.flush is not None:
            deflated += deflate.flush(self.flush)
        deflated += deflate.compress(data[half:]) + deflate.flush()
        deflated = deflated[: len(deflated) - self.cut] + self.after_deflated
        crc = zlib.crc32(data) + self.crc & 0xFFFFFFFF
        trailer = struct.pack("<II", crc, len(data) + self.size & 0xFFFFFFFF)
        return self._header() + deflated + trailer[: self.trailer_bytes]

    def _header(self) -> bytes:
        header = self.magic + bytes([self.method, self.flags])
        header += struct.pack("<I", self.mtime) + bytes([self.extra_flags, self.system])
        if self.flags & FEXTRA:
            header += struct.pack("<H", len(self.extra)) + self.extra
        if self.flags & FNAME:
            header += self.name + b"\0"
        if self.flags & FCOMMENT:
            header += self.comment + b"\0"
        if self.flags & FHCRC:
            header += struct.pack("<H", zlib.crc32(header) + self.header_crc & 0xFFFF)
        return header


EMPTY: Final = GzipMember().wrap(b"")
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "one member": {},
    "stored": {"level": 0},
    "level 9": {"level": 9, "extra_flags": 2},
    "mtime": {"mtime": 0x7FFFFFFF, "system": 255},
    "FTEXT": {"flags": FTEXT},
    "FHCRC": {"flags": FHCRC},
    "wrong FHCRC": {"flags": FHCRC, "header_crc": 1},
    "FEXTRA": {"flags": FEXTRA},
    "empty FEXTRA": {"flags": FEXTRA, "extra": b""},
    "large FEXTRA": {"flags": FEXTRA, "extra": b"AB\x9c\x0f" + bytes(3996)},
    "FEXTRA without subfields": {"flags": FEXTRA, "extra": b"abc"},
    "FNAME": {"flags": FNAME},
    "empty FNAME": {"flags": FNAME, "name": b""},
    "large FNAME": {"flags": FNAME, "name": b"n" * 3000},
    "FCOMMENT": {"flags": FCOMMENT},
    "all flags": {"flags": 31},
    "reserved flag 5": {"flags": 0x20},
    "reserved flag 6": {"flags": 0x40},
    "reserved flag 7": {"flags": 0x80},
    "method 7": {"method": 7},
    "another magic": {"magic": b"\x1f\x9e"},
    "flushed": {"flush": zlib.Z_SYNC_FLUSH},
    "fully flushed": {"flush": zlib.Z_FULL_FLUSH},
    "empty stored block": {"deflated": b"\0\0\0\xff\xff"},
    "a stored block's lengths differ": {"deflated": b"\0\0\0\xff\xfe"},
    "reserved block type": {"deflated": b"\6"},
    "deflated data cut": {"cut": 1},
    "byte after the deflated data": {"after_deflated": b"\0"},
    "wrong CRC": {"crc": 1},
    "wrong size": {"size": 1},
    "size too small": {"size": -1},
    "no trailer": {"trailer_bytes": 0},
    "half a trailer": {"trailer_bytes": 4},
    "trailer cut": {"trailer_bytes": 7},
    "two members": {"members": 2},
    "five members": {"members": 5},
    "empty member before": {"before": EMPTY},
    "empty member after": {"after": EMPTY},
    "a byte before": {"before": b"\0"},
    "a zero after": {"after": b"\0"},
    "eight zeros after": {"after": bytes(8)},
    "thirty zeros after": {"after": bytes(30)},
    "junk after": {"after": b"junk!"},
    "much junk after": {"after": b"junk!" * 10},
    "magic after": {"after": b"\x1f\x8b\x08\x00"},
    "half a member after": {"after": EMPTY[:-5]},
}
"""Streams that differ from an ordinary one in one respect each."""
