"""The index of a segment by time: see `storage.segment.sparse_index` for its file."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from storage.segment import file_names
from storage.segment.sparse_index import SparseIndex

if TYPE_CHECKING:
    from collections.abc import Callable


class TimeEntry(NamedTuple):
    """No record up to `offset` is later than `timestamp`."""

    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    """Index from timestamp to offset."""

    __slots__ = ()

    suffix = file_names.TIME_INDEX
    entry = Struct(">qi")
    key = Struct(">q")

    @property
    def is_full(self) -> bool:
        """Only the slot for the last entry, written at the roll, is left: time to roll."""
        return self._written + len(self._pending) // self.entry.size >= self._max_entries - 1

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, if `timestamp` is greater than that of the last."""
        last = self._last_key
        if last is None:
            last = self.last().timestamp
        if timestamp > last:
            self._append(timestamp, offset - self._base_offset)

    def lookup(self, timestamp: int) -> TimeEntry:
        """Last entry at or before `timestamp`; (-1, base offset) when there is none."""
        slot = self._floor_slot(timestamp)
        return self._entry(slot)

    def last(self) -> TimeEntry:
        """Last entry; (-1, base offset) when there is none."""
        entry = self._entry(len(self) - 1)
        self._last_key = entry.timestamp  # so that `append`, after a write, need not map the file
        return entry

    def prepare_truncation(self, offset: int) -> Callable[[], None]:
        """Prepare to drop the entries from `offset` on; return a function that does it."""
        count = len(self)
        while count and self._entry(count - 1).offset >= offset:
            count -= 1
        return self._prepare_truncation(count)

    def _entry(self, slot: int) -> TimeEntry:
        if slot < 0:
            return TimeEntry(-1, self._base_offset)
        timestamp, relative = self._entry_at(slot)
        return TimeEntry(timestamp, self._base_offset + relative)
