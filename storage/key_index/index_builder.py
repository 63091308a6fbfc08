"""Builds the index of a closed segment, by reading it once.

Hashes are collected block by block. When there are enough for a part, they are put into buckets and
written; so memory is bounded by one part, 30 MB or so, and one batch, for any segment.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import CONTROL_BIT, LOG_APPEND_TIME_BIT
from storage.errors import DamagedFileError
from storage.key_index.batch_source import batches_in
from storage.key_index.checked_pages import PageWriter
from storage.key_index.index_file import (
    BLOCK,
    NARROW,
    PART,
    UNKNOWN_TIME,
    WIDE,
    WITNESSES,
    BlockRow,
    IndexHeader,
    Layout,
    PartRow,
    Witness,
)
from storage.key_index.key_hashes import Collection

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.filesystem import File
    from storage.key_index.batch_source import StoredBatch

BLOCK_BYTES: Final = 64 << 10
LARGEST_SHARE: Final = 50
"""Bytes of log per byte of wide entries, at least; below that, entries are narrow."""
PART_ENTRIES: Final = 1 << 21
_BUCKET_START: Final = "I"
_NO_TIMES: Final = (1 << 63) - 1, -(1 << 63)
"""The least and greatest timestamp of no record: they exclude everything."""


class IndexSource(NamedTuple):
    """A closed segment."""

    log: File
    path: str
    """For error messages."""
    base_offset: int
    """As in its name; after compaction, its first batch may have a later one."""
    size: int


def build_index(
    source: IndexSource, target: File, throttle: Callable[[int], None]
) -> tuple[int, int]:
    """Index all of a segment, into an empty file.

    Returns the bytes and the entries of the index. `throttle` gets the number of bytes read, and
    may block. Raises ApiError (DamagedFileError among them) if the log is not sound, and OSError.
    """
    log, path, _, size = source
    if log.size() != size:
        raise DamagedFileError(f"{path}: {log.size()} bytes are not the {size} that were expected")
    builder = _IndexBuilder(PageWriter(target), size)
    last = None
    for batch in batches_in(log, path, 0, size, throttle):
        builder.add(batch)
        last = batch.position
    if last is None:
        raise DamagedFileError(f"{path}: there is nothing to index")
    return builder.finish(source, last)


class _IndexBuilder:
    def __init__(self, pages: PageWriter, size: int) -> None:
        self._pages = pages
        self._size = size
        self._collection = Collection()
        self._block_start = 0
        self._least, self._greatest = _NO_TIMES
        self._blocks: list[BlockRow] = []
        self._parts: list[PartRow] = []
        self._first_block = 0
        """Of the part that is being collected."""
        self._hashes = array(_BUCKET_START)
        self._ends: list[int] = []
        """Number of hashes after each block of the part."""

    def add(self, batch: StoredBatch) -> None:
        """Take a batch; they must come in order."""
        header, position = batch.header, batch.position
        if position - self._block_start >= BLOCK_BYTES:
            self._end_block(position)
        if header.attributes & CONTROL_BIT:
            return
        last = header.max_timestamp
        first = last if header.attributes & LOG_APPEND_TIME_BIT else header.base_timestamp
        self._least = min(self._least, first)
        self._greatest = max(self._greatest, last)
        if header.record_count > 0:
            self._collection.add(*batch.body(), header.record_count)

    def finish(self, source: IndexSource, last: int) -> tuple[int, int]:
        """Write the rest; returns bytes and entries. The last batch is at byte `last`."""
        self._end_block(self._size)
        self._end_part()
        pages = self._pages
        parts_position = pages.position
        pages.append(b"".join(PART.pack(*part) for part in self._parts))
        blocks_position = pages.position
        pages.append(b"".join(BLOCK.pack(*block) for block in self._blocks))
        starts = [
            self._blocks[len(self._blocks) * n // WITNESSES].position for n in range(WITNESSES)
        ]
        positions = [*starts[:-1], last]
        entries = sum(part.entries for part in self._parts)
        header = IndexHeader(
            source.base_offset,
            self._size,
            entries,
            len(self._parts),
            len(self._blocks),
            parts_position,
            blocks_position,
            tuple(Witness.at(source.log, position) for position in positions),
        )
        size = pages.size
        pages.finish(header.encode())
        return size, entries

    def _end_block(self, position: int) -> None:
        least = self._least if self._collection.is_ascending else UNKNOWN_TIME
        self._blocks.append(BlockRow(self._block_start, least, self._greatest))
        self._hashes.extend(self._collection.take_hashes())
        self._ends.append(len(self._hashes))
        self._block_start = position
        self._least, self._greatest = _NO_TIMES
        blocks = len(self._ends)
        is_full = blocks == WIDE.blocks or len(self._hashes) >= PART_ENTRIES
        if is_full or (blocks == NARROW.blocks and self._is_dense()):
            self._end_part()

    def _is_dense(self) -> bool:
        """Return whether wide entries would take too large a share of the log."""
        covered = self._block_start - self._blocks[self._first_block].position
        return len(self._hashes) * WIDE.entry_bytes * LARGEST_SHARE > covered

    def _end_part(self) -> None:
        count = len(self._ends)
        if not count:
            return
        layout = NARROW if count <= NARROW.blocks and self._is_dense() else WIDE
        entries = len(self._hashes)
        bits = max(0, (entries // layout.entries_per_bucket).bit_length())
        buckets = self._fill_buckets(layout, bits)
        starts = array(_BUCKET_START, [0])
        for bucket in buckets:
            starts.append(starts[-1] + len(bucket))
        entries_position = self._pages.position
        for bucket in buckets:
            self._pages.append(_little_endian(bucket))
        buckets_position = self._pages.position
        self._pages.append(_little_endian(starts))
        self._parts.append(
            PartRow(
                self._first_block,
                count,
                layout.entry_bytes,
                bits,
                entries,
                0,
                buckets_position,
                entries_position,
            )
        )
        self._first_block += count
        del self._hashes[:], self._ends[:]

    def _fill_buckets(self, layout: Layout, bits: int) -> list[array[int]]:
        buckets = [array(layout.type_code) for _ in range(1 << bits)]
        adds = [bucket.append for bucket in buckets]
        mask, shift, block_bits = (1 << bits) - 1, layout.shift, layout.block_bits
        start = 0
        for block, end in enumerate(self._ends):
            for value in self._hashes[start:end]:
                adds[value & mask](value >> shift << block_bits | block)
            start = end
        return buckets


def _little_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()
