"""The two sparse indexes of a segment: offset to file position, and timestamp to offset.

Both are files of fixed-size big-endian entries, sorted by their first field, the key:

    offset index   8 bytes   int32 relative offset   int32 position in the .log file
    time index    12 bytes   int64 timestamp         int32 relative offset

Offsets are relative to the segment's base offset. An entry is added per `index.interval.bytes`
of log. The offset index names the *last* offset of a batch and the position where that batch
begins; the time index names the greatest timestamp so far and the last offset of the first batch
that had it. While a segment is active the file is preallocated to its maximal size, with zeros
after the last entry; a roll or a clean close cuts it to its entries.

Reads go through a read-only mapping, made when first needed. Writes do not: a store into a
mapping of a sparse file on a full disk kills the process with SIGBUS, where a write returns
ENOSPC. New entries wait in memory, some dozens of them, and go to the file in one write; a look-up
near the end of the log, the common one, is answered from those and touches neither file nor map.
Entries lost by a crash are rebuilt from the log (`recovery`), which is read from there anyway.

While descriptors are exhausted, new entries wait: their batches are in the log by then.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from storage.errors import EXHAUSTION, DamagedFileError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.wire import Buffer
    from storage.disk import Disk
    from storage.filesystem import File

PENDING_ENTRIES: Final = 256
"""A write takes 15 us, as the file is opened for it: of files kept open there are too many."""
WARM_ENTRIES: Final = 128
"""Number of entries that look-ups try first, which are likely in the page cache (KAFKA-6432)."""


UNKNOWN, PREALLOCATED, CUT = range(3)
"""End of the file: zeros up to the maximal size, or its last entry."""


class SparseIndex:
    """Entries in memory until written, then in the file; see the module for the layout."""

    __slots__ = (
        "_base_offset",
        "_directory",
        "_disk",
        "_ending",
        "_last_key",
        "_max_entries",
        "_memory",
        "_pending",
        "_written",
        "was_used",
    )

    suffix: ClassVar[str]
    entry: ClassVar[Struct]
    key: ClassVar[Struct]

    def __init__(self, disk: Disk, directory: str, base_offset: int, max_bytes: int) -> None:
        self._disk = disk
        self._directory = directory
        self._base_offset = base_offset
        self._max_entries = max_bytes // self.entry.size
        self._written = 0
        self._pending = bytearray()
        self._last_key: int | None = None
        """Key of the last entry, if it was added here and is there still."""
        self._memory: Buffer | None = None
        self._ending = UNKNOWN
        self.was_used = False

    def __len__(self) -> int:
        return self._written + len(self._pending) // self.entry.size

    def relocate(self, directory: str) -> None:
        """The file is in another directory now."""
        self._directory = directory

    @property
    def path(self) -> str:
        """Path of the file."""
        return file_names.segment_file(self._directory, self._base_offset, self.suffix)

    def adopt(self, size: int | None) -> bool:
        """Take over the entries of a file that was closed cleanly; None: there is no file.

        Returns False if the size is impossible. The content is not checked, which makes start-up
        cheap; damage found at a look-up is repaired then.
        """
        self.forget()
        self._pending.clear()
        self._last_key = None
        self._written, rest = divmod(size or 0, self.entry.size)
        self._ending = UNKNOWN if rest or size is None else CUT
        return rest == 0

    def salvage(self) -> None:
        """Take over the entries of a file that a crash left, up to the first that cannot be."""
        self.forget()
        self._pending.clear()
        self._last_key = None
        self._written = 0
        self._ending = UNKNOWN
        if not self._disk.filesystem.exists(self.path):
            return
        width = self.entry.size
        file = self._disk.filesystem.open(self.path)
        count = self._count_filled(file, file.size() // width)
        data = file.read_at(0, count * width)
        last_key, last_value = -1, 0
        for key, value in self.entry.iter_unpack(data[: len(data) // width * width]):
            if key <= last_key or value < last_value:
                break
            last_key, last_value = key, value
            self._written += 1

    def reset(self, size: int | None) -> None:
        """Start without entries, for any file of `size` bytes; None: there is none."""
        self.adopt(0)
        if size != 0:
            self._disk.filesystem.open(self.path, create=True).truncate(0)

    @property
    def size_when_cut(self) -> int | None:
        """Bytes of the file if it ends with the last of all entries, else None."""
        is_cut = self._ending == CUT and not self._pending
        return self._written * self.entry.size if is_cut else None

    def create(self) -> None:
        """Make the file, all zeros."""
        file = self._disk.filesystem.open(self.path, create=True)
        file.truncate(0)
        file.truncate(self._max_entries * self.entry.size)
        self._ending = PREALLOCATED

    def write_pending(self) -> None:
        """Write the entries held in memory to the file."""
        if not self._pending:
            return
        file = self._disk.filesystem.open(self.path, create=True)
        if self._ending != PREALLOCATED:
            self.forget()
            file.truncate(max(self._max_entries, self._written) * self.entry.size)
            self._ending = PREALLOCATED
        self._write_pending_to(file)

    def trim(self) -> None:
        """Write all entries and cut the file to them: the segment takes no more."""
        if self._ending == CUT and not self._pending:
            return
        self.forget()
        file = self._disk.filesystem.open(self.path, create=True)
        self._write_pending_to(file)
        file.truncate(self._written * self.entry.size)
        self._ending = CUT

    def prepare_clear(self) -> Callable[[], None]:
        """Open the files needed to drop all entries, and return a function that does."""
        return self._prepare_truncation(0)

    def clear(self) -> None:
        """Forget all entries."""
        self.prepare_clear()()

    def prepare_truncation(self, offset: int) -> Callable[[], None]:
        """Prepare to drop the entries from `offset` on; return a function that does it."""
        raise NotImplementedError

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and after `offset`."""
        self.prepare_truncation(offset)()

    def release(self) -> None:
        """Let the mapping go."""
        self._memory = None

    def forget(self) -> None:
        """Let the mapping go, and stop counting it."""
        if self._memory is not None:
            self._memory = None
            self._disk.maps.dismiss(self)

    def _write_pending_to(self, file: File) -> None:
        width = self.entry.size
        file.write_at(self._written * width, self._pending)
        self._written += len(self._pending) // width
        self._pending.clear()

    def _append(self, key: int, value: int) -> None:
        pending = self._pending
        pending += self.entry.pack(key, value)
        self._last_key = key
        if len(pending) >= PENDING_ENTRIES * self.entry.size:
            try:
                self.write_pending()
            except OSError as error:
                if error.errno not in EXHAUSTION:
                    raise
                # The batch is in the log by now; its entry waits, and the next one retries.

    def _entry_at(self, slot: int) -> tuple[int, int]:
        width = self.entry.size
        if slot >= self._written:
            key, value = self.entry.unpack_from(self._pending, (slot - self._written) * width)
        else:
            key, value = self.entry.unpack_from(self._mapped(), slot * width)
        return key, value

    def _floor_slot(self, target: int) -> int:
        """Last slot whose key is at most `target`; -1 when there is none."""
        unpack = self.key.unpack_from
        width = self.entry.size
        buffer: Buffer = self._pending
        first = self._written
        high = len(buffer) // width - 1
        if high < 0 or unpack(buffer, 0)[0] > target:
            first, high = 0, self._written - 1
            if high < 0:
                return -1
            buffer = self._mapped()
            if unpack(buffer, 0)[0] > target:
                return -1
        low = 0
        if high > WARM_ENTRIES and unpack(buffer, (high - WARM_ENTRIES) * width)[0] <= target:
            low = high - WARM_ENTRIES
        while low < high:
            middle = (low + high + 1) >> 1
            if unpack(buffer, middle * width)[0] <= target:
                low = middle
            else:
                high = middle - 1
        return first + low

    def _prepare_truncation(self, count: int) -> Callable[[], None]:
        """Open the files needed to keep `count` entries only, and return a function that does."""
        filesystem = self._disk.filesystem
        is_shorter = count < self._written and filesystem.exists(self.path)
        file = filesystem.open(self.path) if is_shorter else None
        return partial(self._truncate, count, file)

    def _truncate(self, count: int, file: File | None) -> None:
        width = self.entry.size
        assert 0 <= count <= len(self), (self.path, count)
        self._last_key = None
        if count >= self._written:
            del self._pending[(count - self._written) * width :]
            return
        self._pending.clear()
        self._written = count
        self.forget()
        # The rest must be zeros again, or a crash would bring old entries back to life.
        if file is not None:
            file.truncate(count * width)
        self._ending = UNKNOWN if file is None else CUT

    def _mapped(self) -> Buffer:
        self.was_used = True
        memory = self._memory
        if memory is None:
            memory = self._map()
        return memory

    def _map(self) -> Buffer:
        self._disk.maps.make_room()
        try:
            memory = self._disk.filesystem.open(self.path).map()
        except (FileNotFoundError, ValueError) as error:
            raise DamagedFileError(f"{self.path}: {error}") from error
        if len(memory) < self._written * self.entry.size:
            raise DamagedFileError(f"{self.path}: shorter than its {self._written} entries")
        self._disk.maps.admit(self)
        self._memory = memory
        return memory

    def _count_filled(self, file: File, slots: int) -> int:
        """Entries before the first that is all zeros; a preallocated file is not read whole."""
        width = self.entry.size

        def is_empty(slot: int) -> bool:
            return file.read_at(slot * width, width) == bytes(width)

        return bisect_left(range(slots), True, key=is_empty)


class OffsetEntry(NamedTuple):
    """A batch ends at `offset` and begins at `position` of the file."""

    offset: int
    position: int


class OffsetIndex(SparseIndex):
    """Index from offset to file position."""

    __slots__ = ()

    suffix = file_names.OFFSET_INDEX
    entry = Struct(">ii")
    key = Struct(">i")

    @property
    def is_full(self) -> bool:
        """No room for another entry: time to roll."""
        return self._written + len(self._pending) // self.entry.size >= self._max_entries

    @property
    def newest_position(self) -> int:
        """Position in the last unwritten entry; -1 if there is none."""
        width = self.entry.size
        pending = self._pending
        return self.entry.unpack_from(pending, len(pending) - width)[1] if pending else -1

    def append(self, offset: int, position: int) -> None:
        """Add an entry; both must be greater than those of the last."""
        self._append(offset - self._base_offset, position)

    def lookup(self, offset: int) -> OffsetEntry:
        """Last entry at or before `offset`; the beginning of the segment when there is none."""
        slot = self._floor_slot(offset - self._base_offset)
        if slot < 0:  # not by `_entry`: most fetches pass here, and a call counts
            return OffsetEntry(self._base_offset, 0)
        relative, position = self._entry_at(slot)
        return OffsetEntry(self._base_offset + relative, position)

    def last(self) -> OffsetEntry:
        """Last entry; the beginning of the segment when there is none."""
        return self._entry(len(self) - 1)

    def last_before(self, position: int) -> OffsetEntry:
        """Last entry of a batch before `position`; the beginning of the segment without one."""

        def position_at(slot: int) -> int:
            return self._entry_at(slot)[1]

        return self._entry(bisect_left(range(len(self)), position, key=position_at) - 1)

    def prepare_truncation(self, offset: int) -> Callable[[], None]:
        """Prepare to drop the entries from `offset` on; return a function that does it."""
        return self._prepare_truncation(self._floor_slot(offset - 1 - self._base_offset) + 1)

    def _entry(self, slot: int) -> OffsetEntry:
        if slot < 0:
            return OffsetEntry(self._base_offset, 0)
        relative, position = self._entry_at(slot)
        return OffsetEntry(self._base_offset + relative, position)
