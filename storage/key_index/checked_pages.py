"""A file in pages that each end with a checksum, so that a look-up need not read all of it.

    page 0                page 1                page 2
    |4092 bytes   |crc32| |4092 bytes   |crc32| ...

Positions count the 4092 bytes of each page only. A checksum covers the number of its page as well,
so that pages that were exchanged are found out. Page 0 is written last: a file whose writer died
begins with zeros, which do not have the checksum of zeros.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from storage.filesystem import File

PAGE_BYTES: Final = 4096
_CHECKSUM: Final = Struct("<I")
CONTENT_BYTES: Final = PAGE_BYTES - _CHECKSUM.size
_WRITE_BYTES: Final = 1 << 20


class PageWriter:
    """Writes its input from page 1 on, then page 0."""

    def __init__(self, file: File) -> None:
        """Take a file that is empty."""
        self._file = file
        self._waiting = bytearray()
        self._pages = 1

    @property
    def position(self) -> int:
        """Position of the next byte."""
        return self._pages * CONTENT_BYTES + len(self._waiting)

    @property
    def size(self) -> int:
        """Bytes of the file, once all is written."""
        return -(-self.position // CONTENT_BYTES) * PAGE_BYTES

    def append(self, data: bytes) -> None:
        """Add bytes at the end."""
        self._waiting += data
        if len(self._waiting) >= _WRITE_BYTES:
            self._write(len(self._waiting) // CONTENT_BYTES)

    def finish(self, first: bytes) -> None:
        """Write the rest, and `first`, at most one page, at position 0."""
        assert len(first) <= CONTENT_BYTES
        self._waiting += bytes(-len(self._waiting) % CONTENT_BYTES)
        self._write(len(self._waiting) // CONTENT_BYTES)
        self._file.write_at(0, _page(0, first.ljust(CONTENT_BYTES, b"\0")))

    def _write(self, count: int) -> None:
        end = count * CONTENT_BYTES
        contents = [
            bytes(self._waiting[at : at + CONTENT_BYTES]) for at in range(0, end, CONTENT_BYTES)
        ]
        pages = [_page(self._pages + index, content) for index, content in enumerate(contents)]
        self._file.write_at(self._pages * PAGE_BYTES, b"".join(pages))
        self._pages += count
        del self._waiting[:end]


class CheckedPages:
    """Reads such a file."""

    def __init__(self, file: File, path: str) -> None:
        self._file = file
        self._path = path

    def read(self, position: int, length: int) -> bytes:
        """Read `length` bytes; DamagedFileError unless the checksums of all their pages match."""
        first = position // CONTENT_BYTES
        count = (position + length - 1) // CONTENT_BYTES - first + 1
        data = self._file.read_at(first * PAGE_BYTES, count * PAGE_BYTES)
        if len(data) != count * PAGE_BYTES:
            raise DamagedFileError(
                f"{self._path}: page {first + len(data) // PAGE_BYTES} is missing"
            )
        contents = []
        for index in range(count):
            start = index * PAGE_BYTES
            content = data[start : start + CONTENT_BYTES]
            (checksum,) = _CHECKSUM.unpack_from(data, start + CONTENT_BYTES)
            if crc32(content, first + index) != checksum:
                raise DamagedFileError(f"{self._path}: page {first + index} is damaged")
            contents.append(content)
        start = position - first * CONTENT_BYTES
        return b"".join(contents)[start : start + length]


def _page(number: int, content: bytes) -> bytes:
    return content + _CHECKSUM.pack(crc32(content, number))
