"""The `.txnindex` of a segment: the aborted transactions whose marker stands in it (KIP-98).

Entries of 34 bytes, in the order of their markers: int16 version 0, int64 producer id, first
offset, last offset (of the marker) and last stable offset at that time. The file is absent while
there are none, which is the rule; it is small and read whole.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import file_names
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from storage.filesystem import FileSystem

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """What a read_committed consumer needs to skip the records of one transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    """Read and extended in place; holds nothing in memory."""

    __slots__ = ("_filesystem", "path")

    def __init__(self, filesystem: FileSystem, directory: str, base_offset: int) -> None:
        self._filesystem = filesystem
        self.path = file_names.segment_file(directory, base_offset, file_names.TRANSACTION_INDEX)

    def entries(self) -> list[AbortedTransaction]:
        """All entries; DamagedFileError when the file holds something else."""
        if not self._filesystem.exists(self.path):
            return []
        data = self._filesystem.read(self.path)
        if len(data) % ENTRY.size:
            raise DamagedFileError(f"{self.path}: {len(data)} bytes are no whole entries")
        entries = []
        for version, *fields in ENTRY.iter_unpack(data):
            if version != VERSION:
                raise DamagedFileError(f"{self.path}: version {version} is unknown")
            entries.append(AbortedTransaction(*fields))
        return entries

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry at the end."""
        file = self._filesystem.open(self.path, create=True)
        file.write_at(file.size() // ENTRY.size * ENTRY.size, ENTRY.pack(VERSION, *aborted))

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker stands at or after `offset`."""
        entries = self.entries()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            self._filesystem.open(self.path).truncate(len(kept) * ENTRY.size)

    def remove(self) -> None:
        """Remove the file if there is one."""
        self._filesystem.remove(self.path)

    def sync(self) -> None:
        """Wait for the disk."""
        if self._filesystem.exists(self.path):
            self._filesystem.open(self.path).sync()
