"""The `.txnindex` of a segment: the aborted transactions whose marker stands in it (KIP-98).

Entries of 34 bytes, in the order of their markers: int16 version 0, int64 producer id, first
offset, last offset (of the marker) and last stable offset at that time. The file is absent while
there are none, which is the rule.

A reader of [from, to) begins at the first marker at or after `from`, and may stop at the first
entry whose last stable offset is `to` or beyond: whatever is aborted later begins there or after.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import file_names
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.filesystem import File, FileSystem

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")
ENTRIES_AT_A_TIME: Final = 100
_UNKNOWN: Final = -1


class AbortedTransaction(NamedTuple):
    """What a read_committed consumer needs to skip the records of one transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    """Read and extended in place; holds how many entries there are, and nothing else of them."""

    __slots__ = ("_base_offset", "_count", "_directory", "_filesystem")

    def __init__(self, filesystem: FileSystem, directory: str, base_offset: int) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._base_offset = base_offset
        self._count = _UNKNOWN

    def __len__(self) -> int:
        if self._count == _UNKNOWN:
            self._count = self._size() // ENTRY.size
        return self._count

    @property
    def path(self) -> str:
        """Where the file is, or would be."""
        return file_names.segment_file(
            self._directory, self._base_offset, file_names.TRANSACTION_INDEX
        )

    def entries(self) -> list[AbortedTransaction]:
        """All entries; DamagedFileError when the file holds something else."""
        if self._size() % ENTRY.size:
            raise DamagedFileError(f"{self.path}: {self._size()} bytes are no whole entries")
        return list(self._from(0))

    def overlapping(
        self, from_offset: int, to_offset: int
    ) -> tuple[list[AbortedTransaction], bool]:
        """Transactions that overlap [from, to), and whether later segments need not be asked."""
        found: list[AbortedTransaction] = []
        if not len(self):
            return found, False
        for aborted in self._from(self._slot_of_marker(from_offset)):
            if aborted.first_offset < to_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= to_offset:
                return found, True
        return found, False

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry at the end."""
        file = self._filesystem.open(self.path, create=True)
        file.write_at(len(self) * ENTRY.size, ENTRY.pack(VERSION, *aborted))
        self._count += 1

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker stands at or after `offset`."""
        if self._size():
            self._count = self._slot_of_marker(offset)
            self._filesystem.open(self.path).truncate(self._count * ENTRY.size)

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """Make `entries` all there are."""
        data = b"".join(ENTRY.pack(VERSION, *aborted) for aborted in entries)
        if data:
            self._filesystem.replace(self.path, data, sync=False)
        elif self._size():
            self._filesystem.open(self.path).truncate(0)
        self._count = len(entries)

    def sync(self) -> None:
        """Wait for the disk."""
        if self._filesystem.exists(self.path):
            self._filesystem.open(self.path).sync()

    def _size(self) -> int:
        path = self.path
        return self._filesystem.open(path).size() if self._filesystem.exists(path) else 0

    def _from(self, slot: int) -> Iterator[AbortedTransaction]:
        """Entries from one on; DamagedFileError at one of another version."""
        if slot >= len(self):
            return
        file = self._filesystem.open(self.path)
        for first in range(slot, len(self), ENTRIES_AT_A_TIME):
            count = min(ENTRIES_AT_A_TIME, len(self) - first)
            data = self._read(file, first, count)
            for version, *fields in ENTRY.iter_unpack(data):
                if version != VERSION:
                    raise DamagedFileError(f"{self.path}: version {version} is unknown")
                yield AbortedTransaction(*fields)

    def _slot_of_marker(self, offset: int) -> int:
        """The first entry whose marker stands at or after `offset`."""
        file = self._filesystem.open(self.path)
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            _, _, _, last_offset, _ = ENTRY.unpack(self._read(file, middle, 1))
            if last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, file: File, slot: int, count: int) -> bytes:
        data = file.read_at(slot * ENTRY.size, count * ENTRY.size)
        if len(data) < count * ENTRY.size:
            raise DamagedFileError(f"{self.path}: there is no entry {slot + count - 1}")
        return data
