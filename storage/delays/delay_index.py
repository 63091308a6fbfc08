"""The `.delays` of a segment: positions of the batches in it that concern delays.

Entries of 24 bytes in the order of the log: offset of the batch, its position with its kind in the
lowest byte, its latest timestamp. The file is absent if there is no such batch, which is the rule,
and a segment without one has no object of this class.

The contents of a batch are always read from the log: the index only spares reading all of it. An
entry is added after its batch is in the log, so a crash may lose it; recovery adds it again. If the
file cannot be opened for lack of descriptors, entries wait in memory, where readers find them.

An index is void if it is known to disagree with the log. Its file then ends within an entry, so
that a later process detects it as well, and all reads raise DamagedDelaysError until the index is
rebuilt (`delay_rebuild`).
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import (
    CONTROL_BIT,
    NO_SEQUENCE,
    POINT_BIT,
    RELAY_BIT,
    TRANSACTIONAL_BIT,
)
from storage.errors import EXHAUSTION, DamagedDelaysError, DamagedFileError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.records.batch import BatchHeader
    from storage.filesystem import File, FileSystem

ENTRY: Final = Struct(">qqq")
ENTRIES_AT_A_TIME: Final = 256
ENTRIES_SEARCHED: Final = 4096
"""Read together to find the last one of a kind, by one byte of each: a million take 10 ms."""
PENDING_ENTRIES: Final = 64
"""Entries written together; until then a reader gets them from memory."""
VOID_SIZE: Final = 1
"""File size of a void index: no whole entry. It is set in one step."""
_KIND_BITS: Final = 8
_KIND_AT: Final = 15
"""Byte of an entry that holds its kind."""


class DelayKind(IntEnum):
    """Kind of a batch with the delay bit, by its header."""

    WAITING = 1
    """Records that wait, or a cancellation."""
    DELIVERED = 2
    """Records that have waited, or what compaction left of them."""
    ENDED = 3
    """The end of a transaction."""
    RELAYED = 4
    """Progress of dead letters."""


class DelayEntry(NamedTuple):
    """One batch that has to do with delays."""

    offset: int
    position: int
    kind: DelayKind
    timestamp: int


def kind_of(header: BatchHeader) -> DelayKind:
    """The kind of a batch with the delay bit."""
    if header.attributes & RELAY_BIT:
        return DelayKind.RELAYED
    if not header.attributes & CONTROL_BIT or header.attributes & POINT_BIT:
        return DelayKind.DELIVERED
    if header.attributes & TRANSACTIONAL_BIT and header.base_sequence == NO_SEQUENCE:
        return DelayKind.ENDED
    return DelayKind.WAITING


def packed_entry(header: BatchHeader, position: int) -> bytes:
    """The entry of a batch with the delay bit, as it stands in the file."""
    kind = kind_of(header)
    return _packed(DelayEntry(header.base_offset, position, kind, header.max_timestamp))


class DelayIndex:
    """Read and extended in place; holds how many entries there are, and those not yet written."""

    __slots__ = (
        "_base_offset",
        "_count",
        "_directory",
        "_filesystem",
        "_pending",
        "changes",
        "is_void",
    )

    def __init__(
        self, filesystem: FileSystem, directory: str, base_offset: int, size: int = 0
    ) -> None:
        """`size` is that of the file, if there is one."""
        self._filesystem = filesystem
        self._directory = directory
        self._base_offset = base_offset
        self._count = size // ENTRY.size
        """Entries in the file."""
        self._pending: tuple[DelayEntry, ...] = ()
        self.is_void = size % ENTRY.size > 0
        """True if the index is void. Appends are then left out, truncation is a no-op."""
        self.changes = 0
        """Changes with every modification but an appended entry."""

    def __len__(self) -> int:
        return self._count + len(self._pending)

    @property
    def may_hold(self) -> bool:
        """True if there is an entry, or may be one."""
        return self.is_void or len(self) > 0

    @property
    def size(self) -> int:
        """Bytes that the file has once all is written."""
        return VOID_SIZE if self.is_void else len(self) * ENTRY.size

    def relocate(self, directory: str) -> None:
        """The file is in another directory now."""
        self._directory = directory

    @property
    def path(self) -> str:
        """Path of the file, which may not exist."""
        return file_names.segment_file(self._directory, self._base_offset, file_names.DELAY_INDEX)

    def append(self, entry: DelayEntry) -> None:
        """Add an entry at the end; some are written together, or when there are descriptors."""
        if self.is_void:
            return
        self._pending = (*self._pending, entry)
        if len(self._pending) >= PENDING_ENTRIES:
            try:
                self.write_pending()
            except OSError as error:
                if error.errno not in EXHAUSTION:
                    raise

    def write_pending(self) -> None:
        """Write the entries held in memory to the file."""
        if self._pending:
            file = self._filesystem.open(self.path, create=True)
            file.write_at(self._count * ENTRY.size, b"".join(map(_packed, self._pending)))
            self._count += len(self._pending)
            self._pending = ()

    def entries_from(
        self, offset: int, is_true: Callable[[DelayEntry], bool] | None = None
    ) -> Iterator[DelayEntry]:
        """Entries of batches at or after `offset`, in order, as they were when this is called.

        Raises DamagedDelaysError for a missing entry, or one out of order. With `is_true`, also if
        the search was misled: it checks the entry before the first.
        """
        slot, written, pending = self._slot_of(offset), self._count, self._pending
        last = _before(self._base_offset)
        at = min(slot, written)
        file = self._open() if at or slot < written else None
        if file is not None and at:
            last = self._read(file, at - 1, 1)[0]
            if is_true is not None and not is_true(last):
                raise self._damage(f"the log has no such batch of offset {last.offset}")
        while file is not None and at < written:
            for entry in self._read(file, at, min(ENTRIES_AT_A_TIME, written - at)):
                self._check_order(last, entry)
                yield entry
                last, at = entry, at + 1
        for entry in pending[max(slot - written, 0) :]:
            self._check_order(last, entry)
            yield entry
            last = entry

    def last_of(self, kind: DelayKind, before: int) -> DelayEntry | None:
        """The last batch of a kind before an offset; None when this segment has none."""
        slot = self._slot_of(before)
        for entry in reversed(self._pending[: max(slot - self._count, 0)]):
            if entry.kind is kind:
                return entry
        slot = min(slot, self._count)
        file = self._open() if slot else None
        while file is not None and slot:
            count = min(ENTRIES_SEARCHED, slot)
            slot -= count
            found = self._bytes(file, slot, count)[_KIND_AT :: ENTRY.size].rfind(kind)
            if found >= 0:
                return self._read(file, slot + found, 1)[0]
        return None

    def prepare_truncation(
        self, offset: int, is_true: Callable[[DelayEntry], bool]
    ) -> Callable[[], None]:
        """Open the files needed to drop the entries from `offset` on; return a function that does.

        If the search for them was misled, which `is_true` of an entry shows, the index is void.
        """
        if self.is_void:
            return self._note_change
        try:
            slot, written = self._slot_of(offset), self._count
            file = self._open() if slot < written else None
            at = max(min(slot, written) - 1, 0)
            around = self._read(file or self._open(), at, min(2, written - at)) if written else []
        except DamagedDelaysError:
            return self._prepare_void()
        if not all(map(is_true, around)):
            return self._prepare_void()

        def truncate() -> None:
            self._note_change()
            self._pending = self._pending[: max(slot - written, 0)]
            if file is not None:
                self._count = slot
                file.truncate(slot * ENTRY.size)

        return truncate

    def make_void(self) -> None:
        """Void the index, here and for later processes: it disagrees with the log."""
        self._prepare_void()()

    def salvage(self, position: int) -> bool:
        """After a crash: keep the sound entries of batches that begin before `position`.

        Returns whether no entry was lost, as far as the file shows.
        """
        self._note_change()
        self._pending = ()
        self.is_void = False
        if not self._filesystem.exists(self.path):
            self._count = 0
            return True
        file = self._open()
        size = file.size()
        self._count = size // ENTRY.size
        sound, is_whole = self._count_sound(file, position)
        self._count = sound
        file.truncate(sound * ENTRY.size)
        return is_whole and (size % ENTRY.size == 0 or sound < size // ENTRY.size)

    def holds(self, slot: int, data: bytes) -> bool:
        """Return whether these are the entries from `slot` on, as they stand in the file."""
        if self.is_void:
            return False
        in_file = min(slot + len(data) // ENTRY.size, self._count) - slot
        known = b""
        if in_file > 0 and self._filesystem.exists(self.path):
            known = self._open().read_at(slot * ENTRY.size, in_file * ENTRY.size)
        known += b"".join(map(_packed, self._pending[max(slot - self._count, 0) :]))
        return known[: len(data)] == data

    def replace(self, path: str, count: int) -> None:
        """Have the file at `path`, of `count` entries, in place of all that was known."""
        self._filesystem.rename(path, self.path)
        self._note_change()
        self._count = count
        self._pending = ()
        self.is_void = False

    def sync(self) -> None:
        """Wait for the disk."""
        if self._filesystem.exists(self.path):
            self._open().sync()

    def _prepare_void(self) -> Callable[[], None]:
        file = self._filesystem.open(self.path, create=True)

        def make_void() -> None:
            self._note_change()
            self.is_void = True
            self._count = 0
            self._pending = ()
            file.truncate(VOID_SIZE)

        return make_void

    def _note_change(self) -> None:
        self.changes += 1

    def _count_sound(self, file: File, position: int) -> tuple[int, bool]:
        """Sound entries before a position, and whether none before it is not sound."""
        last = _before(self._base_offset)
        slot = 0
        try:
            for first in range(0, self._count, ENTRIES_AT_A_TIME):
                for entry in self._read(file, first, min(ENTRIES_AT_A_TIME, self._count - first)):
                    is_next = entry.offset > last.offset and entry.position > last.position
                    if not is_next or entry.position >= position:
                        return slot, is_next
                    last, slot = entry, slot + 1
        except DamagedFileError:
            return slot, False
        return slot, True

    def _slot_of(self, offset: int) -> int:
        """The first entry at or after `offset`."""
        if self.is_void:
            raise self._damage("it does not say what the log does")
        pending = self._pending
        if not pending or pending[0].offset >= offset:
            return self._slot_in_file(offset)
        return self._count + sum(entry.offset < offset for entry in pending)

    def _slot_in_file(self, offset: int) -> int:
        low, high = 0, self._count
        file = self._open() if high and offset > self._base_offset else None
        if file is None:
            return 0
        while low < high:
            middle = (low + high) // 2
            if self._read(file, middle, 1)[0].offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _check_order(self, last: DelayEntry, entry: DelayEntry) -> None:
        if entry.offset <= last.offset or entry.position <= last.position:
            text = f"offset {entry.offset} at {entry.position} comes after {last.offset}"
            raise self._damage(f"{text} at {last.position}")

    def _damage(self, text: str) -> DamagedDelaysError:
        return DamagedDelaysError(f"{self.path}: {text}", self._base_offset)

    def _open(self) -> File:
        """Its file, in which there are entries."""
        try:
            return self._filesystem.open(self.path)
        except FileNotFoundError:
            raise self._damage("it is gone") from None

    def _read(self, file: File, slot: int, count: int) -> list[DelayEntry]:
        data = self._bytes(file, slot, count)
        try:
            return [_unpacked(*fields) for fields in ENTRY.iter_unpack(data)]
        except ValueError as error:
            raise self._damage(str(error)) from None

    def _bytes(self, file: File, slot: int, count: int) -> bytes:
        data = file.read_at(slot * ENTRY.size, count * ENTRY.size)
        if len(data) < count * ENTRY.size:
            raise self._damage(f"there is no entry {slot + count - 1}")
        return data


def _before(base_offset: int) -> DelayEntry:
    """Sentinel before the first entry of a segment."""
    return DelayEntry(base_offset - 1, -1, DelayKind.WAITING, 0)


def _packed(entry: DelayEntry) -> bytes:
    place = entry.position << _KIND_BITS | entry.kind
    return ENTRY.pack(entry.offset, place, entry.timestamp)


def _unpacked(offset: int, place: int, timestamp: int) -> DelayEntry:
    kind = DelayKind(place & (1 << _KIND_BITS) - 1)
    return DelayEntry(offset, place >> _KIND_BITS, kind, timestamp)
