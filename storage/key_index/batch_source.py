"""Read a stretch of a `.log` file batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import CODEC_MASK, HEADER_BYTES, MAGIC, BatchHeader, parse_header
from protocol.records.compression import DEFAULT_LIMIT, decompress
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.filesystem import File

CHUNK_BYTES: Final = 1 << 18
"""Bytes read at a time; few enough that the memory of one read serves the next."""


class Body(NamedTuple):
    """Bytes in which the records of a batch stand, uncompressed."""

    data: bytes
    start: int
    end: int


class StoredBatch(NamedTuple):
    """A batch as it lies in a piece of the file."""

    header: BatchHeader
    position: int
    """In the file."""
    chunk: bytes
    start: int
    """In the chunk."""

    def body(self) -> Body:
        """Its records; ApiError when they are compressed and cannot be decompressed."""
        header = self.header
        start, end = self.start + HEADER_BYTES, self.start + header.size_in_bytes
        if header.attributes & CODEC_MASK == 0:
            return Body(self.chunk, start, end)
        compressed = memoryview(self.chunk)[start:end]
        data = bytes(decompress(header.codec, compressed, DEFAULT_LIMIT))
        return Body(data, 0, len(data))


def batches_in(
    file: File, path: str, start: int, end: int, throttle: Callable[[int], None]
) -> Iterator[StoredBatch]:
    """Batches from `start`, where one must begin, to `end`, where one must end.

    `throttle` gets the number of bytes read. Raises DamagedFileError where a whole batch is
    missing.
    """
    wanted = CHUNK_BYTES
    while start < end:
        chunk = file.read_at(start, min(wanted, end - start))
        length = len(chunk)
        throttle(length)
        if length < min(wanted, end - start):
            raise DamagedFileError(f"{path}: it ends at byte {start + length}, not {end}")
        at, wanted = 0, CHUNK_BYTES
        while at + HEADER_BYTES <= length:
            header = parse_header(chunk, at)
            size = header.size_in_bytes
            if not HEADER_BYTES <= size <= end - start - at or header.magic != MAGIC:
                raise DamagedFileError(f"{path}: no batch at byte {start + at}")
            if at + size > length:
                wanted = max(CHUNK_BYTES, size)
                break
            yield StoredBatch(header, start + at, chunk, at)
            at += size
        if at == 0 and wanted == CHUNK_BYTES:
            raise DamagedFileError(f"{path}: no batch at byte {start}")
        start += at
