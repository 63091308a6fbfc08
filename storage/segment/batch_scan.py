"""Walk the batches of a `.log` file: headers only, or whole and with their checksums.

`walk_headers` trusts the file and reads as little as it can. `CheckedScan` is for recovery: it
reads everything, believes nothing, and stops at the first byte that cannot be right, saying why.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import (
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    compute_crc,
    parse_header,
)
from storage.errors import DamagedFileError, DirectoryRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.filesystem import File

CHUNK_BYTES: Final = 1 << 18
"""Few enough that the memory of one read serves the next: 1 MiB takes a quarter longer in all."""

HOP_BYTES: Final = 4096 + HEADER_BYTES
"""One index interval: one such read usually covers the walk of a look-up."""

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
OLD_HEADER_BYTES: Final = 17

_OLD_CRC = struct.Struct(">I")
_unpack_place = struct.Struct(">qiibIhi").unpack_from
"""The header up to last_offset_delta."""


class BatchPlace(NamedTuple):
    """Position of a batch, with the header fields needed to read a region."""

    position: int
    size: int
    base_offset: int
    last_offset: int


def find_batch(file: File, position: int, end: int, offset: int) -> BatchPlace | None:
    """First batch between two positions that ends at or after `offset`.

    The light form of `walk_headers`, for the path of Fetch. Raises DamagedFileError where no batch
    can begin.
    """
    start, chunk = position, b""
    while position + HEADER_BYTES <= end:
        within = position - start
        if within + HEADER_BYTES > len(chunk):
            start, within = position, 0
            chunk = file.read_at(position, HOP_BYTES)
            if len(chunk) < HEADER_BYTES:
                return None
        base_offset, length, _, magic, _, _, delta = _unpack_place(chunk, within)
        size = LENGTH_OVERHEAD + length
        if size < HEADER_BYTES or magic != MAGIC:
            raise DamagedFileError(f"no record batch at byte {position}")
        if base_offset + delta >= offset:
            return BatchPlace(position, size, base_offset, base_offset + delta)
        position += size
    return None


def walk_headers(
    file: File, position: int, end: int, step: int = HOP_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch between two positions; bodies are hardly read.

    Reads `step` bytes at once, and a header alone where batches are larger than a hop. Raises
    DamagedFileError where no batch can begin.
    """
    start, chunk = position, b""
    size = 0
    while position + HEADER_BYTES <= end:
        within = position - start
        if within + HEADER_BYTES > len(chunk):
            start, within = position, 0
            chunk = file.read_at(position, step if size < HOP_BYTES else HEADER_BYTES)
            if len(chunk) < HEADER_BYTES:
                return
        header = parse_header(chunk, within)
        size = LENGTH_OVERHEAD + header.batch_length
        if size < HEADER_BYTES or header.magic != MAGIC:
            raise DamagedFileError(f"no record batch at byte {position}")
        yield position, header
        position += size


class CheckedScan:
    """Iterate over (position, header) of the sound batches from `position` on.

    Afterwards `position` is the end of the last sound batch, and `problem` says why the next is
    not sound; None at the end of the file.
    """

    __slots__ = ("_base_offset", "_end", "_file", "_next_offset", "position", "problem")

    def __init__(self, file: File, base_offset: int, position: int, end: int) -> None:
        self._file = file
        self._base_offset = base_offset
        self._next_offset = base_offset
        self._end = end
        self.position = position
        self.problem: str | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader]]:
        chunk = memoryview(b"")
        start = self.position
        while self.position < self._end:
            within = self.position - start
            size = self._size_at(chunk, within)
            if size is None or within + size > len(chunk):
                start, within = self.position, 0
                chunk = memoryview(self._file.read_at(start, max(CHUNK_BYTES, size or 0)))
                size = self._size_at(chunk, 0)
                if size is not None and size > len(chunk):  # only now is it known
                    chunk = memoryview(self._file.read_at(start, size))
            header = self._check(chunk, within, size)
            if header is None:
                return
            yield self.position, header
            self._next_offset = header.next_offset
            self.position += header.size_in_bytes

    def _size_at(self, chunk: memoryview, within: int) -> int | None:
        """Size of the batch, if its header is in the chunk and leaves it within the file."""
        if within + HEADER_BYTES > len(chunk):
            return None
        size = parse_header(chunk, within).size_in_bytes
        return size if HEADER_BYTES <= size <= self._end - self.position else None

    def _check(self, chunk: memoryview, within: int, size: int | None) -> BatchHeader | None:
        """Header of the batch if all of it is sound; else note the problem."""
        if len(chunk) - within >= OLD_HEADER_BYTES and chunk[within + 16] in {0, 1}:
            self._refuse_old_format(chunk[within:])
        if size is None or within + size > len(chunk):
            self.problem = "the batch is cut off or its length is wrong"
            return None
        header = parse_header(chunk, within)
        if header.magic != MAGIC:
            self.problem = f"{header.magic} is no batch format"
        elif header.crc != compute_crc(chunk, within, size):
            self.problem = "the checksum does not match"
        elif header.base_offset < self._next_offset or header.last_offset_delta < 0:
            self.problem = f"offset {header.base_offset} comes after {self._next_offset - 1}"
        elif header.last_offset - self._base_offset > MAX_RELATIVE_OFFSET:
            self.problem = f"offset {header.last_offset} does not fit into the segment"
        else:
            return header
        return None

    def _refuse_old_format(self, data: memoryview) -> None:
        """Stop start-up at a sound message of format 0 or 1, rather than cut it off as damage."""
        size = LENGTH_OVERHEAD + int.from_bytes(data[8:12], "big", signed=True)
        if not OLD_HEADER_BYTES < size <= self._end - self.position:
            return
        message = data if size <= len(data) else memoryview(self._file.read_at(self.position, size))
        if _OLD_CRC.unpack_from(message, 12)[0] == zlib.crc32(message[16:size]):
            raise DirectoryRefusedError(
                f"byte {self.position} of the segment at offset {self._base_offset} holds messages "
                f"of format {data[16]}, which only brokers before Apache Kafka 4.0 read"
            )
