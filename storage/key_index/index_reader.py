"""Look a hash up in the index of a segment."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Final

from storage.errors import DamagedFileError
from storage.key_index.checked_pages import CheckedPages
from storage.key_index.index_file import (
    BLOCK,
    HEADER,
    LAYOUTS,
    PART,
    BlockRow,
    IndexHeader,
    PartRow,
    Witness,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.filesystem import File

_START_BYTES: Final = 4


class IndexReader:
    """The index of one segment; every method raises DamagedFileError where it is damaged."""

    def __init__(self, file: File, path: str) -> None:
        """Read what page 0 says."""
        self._path = path
        self._pages = CheckedPages(file, path)
        self.header = IndexHeader.decode(self._pages.read(0, HEADER.size), path)

    def check(self, log: File, base_offset: int, size: int) -> None:
        """Raise DamagedFileError unless it is the index of this log, of this size."""
        header = self.header
        if (header.base_offset, header.log_size) != (base_offset, size):
            raise DamagedFileError(
                f"{self._path}: it is of {header.log_size} bytes from offset {header.base_offset} "
                f"on, the log has {size} from offset {base_offset} on"
            )
        for witness in header.witnesses:
            if Witness.at(log, witness.position) != witness:
                raise DamagedFileError(
                    f"{self._path}: byte {witness.position} of the log is not what was indexed"
                )

    def find(self, value: int, times: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Byte ranges of the log that may hold records of a hash, in order.

        Blocks are left out if none of their records has a timestamp in `times`, both inclusive.
        """
        header = self.header
        table = self._pages.read(header.parts_position, header.parts * PART.size)
        for fields in PART.iter_unpack(table):
            part = PartRow(*fields)
            for number in self._blocks_with(part, value):
                block, end = self._block(part.first_block + number)
                if block.least_timestamp <= times[1] and block.greatest_timestamp >= times[0]:
                    yield block.position, end

    def _blocks_with(self, part: PartRow, value: int) -> list[int]:
        """Blocks of a part, counted from its first, that have an entry of this hash."""
        layout = LAYOUTS[part.entry_bytes]
        bucket = value & ((1 << part.bucket_bits) - 1)
        bounds = self._numbers("I", part.buckets_position + bucket * _START_BYTES, 2)
        start, end = bounds
        if end == start:
            return []
        position = part.entries_position + start * layout.entry_bytes
        entries = self._numbers(layout.type_code, position, end - start)
        wanted, bits, mask = value >> layout.shift, layout.block_bits, layout.blocks - 1
        return sorted({entry & mask for entry in entries if entry >> bits == wanted})

    def _block(self, number: int) -> tuple[BlockRow, int]:
        """A block, and where it ends."""
        header = self.header
        is_last = number == header.blocks - 1
        length = BLOCK.size if is_last else 2 * BLOCK.size
        data = self._pages.read(header.blocks_position + number * BLOCK.size, length)
        rows = [BlockRow(*fields) for fields in BLOCK.iter_unpack(data)]
        return rows[0], header.log_size if is_last else rows[1].position

    def _numbers(self, type_code: str, position: int, count: int) -> array[int]:
        numbers = array(type_code)
        numbers.frombytes(self._pages.read(position, count * numbers.itemsize))
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers
