"""The `.txnindex` of a segment: the aborted transactions with their marker in it (KIP-98).

Entries of 34 bytes, in the order of their markers: int16 version 0, int64 producer id, first
offset, last offset (of the marker) and last stable offset at that time. The file is absent while
there are none, which is the rule.

A reader of [from, to) begins at the first marker at or after `from`, and may stop at the first
entry whose last stable offset is `to` or beyond: transactions aborted later begin there or after.

The marker is in the log before its entry comes here. If the file cannot be opened for lack of
descriptors, the entry waits in memory, where readers find it.
"""

from __future__ import annotations

from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.errors import EXHAUSTION, DamagedFileError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.filesystem import File, FileSystem

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")
ENTRIES_AT_A_TIME: Final = 100
_UNKNOWN: Final = -1


class AbortedTransaction(NamedTuple):
    """Data that a read_committed consumer needs to skip the records of one transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    """Read and extended in place; holds how many entries there are, and those not yet written."""

    __slots__ = ("_base_offset", "_count", "_directory", "_filesystem", "_pending")

    def __init__(self, filesystem: FileSystem, directory: str, base_offset: int) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._base_offset = base_offset
        self._count = _UNKNOWN
        """Entries in the file."""
        self._pending: tuple[AbortedTransaction, ...] = ()

    def __len__(self) -> int:
        return self._written() + len(self._pending)

    def relocate(self, directory: str) -> None:
        """The file is in another directory now."""
        self._directory = directory

    @property
    def path(self) -> str:
        """Path of the file, which may not exist."""
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
        """Add an entry at the end; without a descriptor, it is written later."""
        assert self._base_offset <= aborted.last_offset >= aborted.first_offset, aborted
        self._pending = (*self._pending, aborted)
        try:
            self.write_pending()
        except OSError as error:
            if error.errno not in EXHAUSTION:
                raise

    def write_pending(self) -> None:
        """Write the entries held in memory to the file."""
        if self._pending:
            file = self._filesystem.open(self.path, create=True)
            data = b"".join(ENTRY.pack(VERSION, *aborted) for aborted in self._pending)
            file.write_at(self._written() * ENTRY.size, data)
            self._count += len(self._pending)
            self._pending = ()

    def prepare_truncation(self, offset: int) -> Callable[[], None]:
        """Open the files needed to drop transactions whose marker is at or after `offset`.

        Returns a function that drops them.
        """
        slot = self._slot_of_marker(offset)
        written = self._written()
        file = self._filesystem.open(self.path) if slot < written else None

        def truncate() -> None:
            self._pending = self._pending[: max(slot - written, 0)]
            if file is not None:
                self._count = slot
                file.truncate(slot * ENTRY.size)

        return truncate

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """Make `entries` all there are."""
        data = b"".join(ENTRY.pack(VERSION, *aborted) for aborted in entries)
        if data:
            self._filesystem.replace(self.path, data, sync=False)
        elif self._size():
            self._filesystem.open(self.path).truncate(0)
        self._count = len(entries)
        self._pending = ()

    def _written(self) -> int:
        if self._count == _UNKNOWN:
            self._count = self._size() // ENTRY.size
        return self._count

    def _size(self) -> int:
        path = self.path
        return self._filesystem.open(path).size() if self._filesystem.exists(path) else 0

    def _from(self, slot: int) -> Iterator[AbortedTransaction]:
        """Entries from one on; DamagedFileError at one of another version."""
        written = self._written()
        file = self._filesystem.open(self.path) if slot < written else None
        for first in range(slot, written, ENTRIES_AT_A_TIME):
            assert file is not None
            data = self._read(file, first, min(ENTRIES_AT_A_TIME, written - first))
            for version, *fields in ENTRY.iter_unpack(data):
                if version != VERSION:
                    raise DamagedFileError(f"{self.path}: version {version} is unknown")
                yield AbortedTransaction(*fields)
        yield from self._pending[max(slot - written, 0) :]

    def _slot_of_marker(self, offset: int) -> int:
        """The first entry whose marker stands at or after `offset`."""
        written = self._written()
        file = self._filesystem.open(self.path) if written else None

        def last_offset_at(slot: int) -> int:
            if file is None or slot >= written:
                return self._pending[slot - written].last_offset
            _, _, _, last_offset, _ = ENTRY.unpack(self._read(file, slot, 1))
            return int(last_offset)

        return bisect_left(range(written + len(self._pending)), offset, key=last_offset_at)

    def _read(self, file: File, slot: int, count: int) -> bytes:
        data = file.read_at(slot * ENTRY.size, count * ENTRY.size)
        if len(data) < count * ENTRY.size:
            raise DamagedFileError(f"{self.path}: there is no entry {slot + count - 1}")
        return data
