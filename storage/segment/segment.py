"""One segment of a log: a `.log` file of record batches, and the indexes that lead into it.

The name of every file of a segment is its base offset in twenty digits. The `.log` file holds
batches back to back, nothing else, in the bytes in which they came over the network. Files are
opened and indexes mapped when they are first needed, so that an unused segment costs a few hundred
bytes of memory and no descriptor. Look-ups are in `segment_reader`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from storage.delays.delay_index import DelayEntry, DelayIndex, kind_of
from storage.delays.delay_rebuild import rebuild_at_once
from storage.errors import DamagedFileError
from storage.filesystem import sync_all_of
from storage.segment import file_names
from storage.segment.batch_scan import CHUNK_BYTES, walk_headers
from storage.segment.pending_write import PendingWrite
from storage.segment.segment_reader import NO_TAIL, NO_TIMESTAMP, UNREAD, SegmentReading

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer

OFFSET_BYTES: Final = 8
"""With which a batch begins."""


class Segment(SegmentReading):
    """Appends and truncation within one file set; offsets are absolute throughout."""

    __slots__ = ()

    def create(self) -> None:
        """Make the files: an empty `.log`, and indexes at their full size; all of them or none."""
        try:
            self._disk.filesystem.open(self.path, create=True)
            self.offset_index.create()
            self.time_index.create()
        except OSError:
            with suppress(OSError):  # on a faulty disk the next start finds the rest
                for suffix in file_names.SEGMENT_SUFFIXES:
                    self._disk.filesystem.remove(self._path(suffix))
            raise

    def adopt(self, size: int, offset_index_size: int | None, time_index_size: int | None) -> bool:
        """Take over files that were closed cleanly; False when an index cannot be right.

        None stands for an index that is not there.
        """
        self.size = size
        self._max_timestamp = UNREAD if size else NO_TIMESTAMP
        offsets_fit = self.offset_index.adopt(offset_index_size)
        times_fit = self.time_index.adopt(time_index_size)
        self._note_room()
        return times_fit and offsets_fit

    def adopt_empty(self, offset_index_size: int | None, time_index_size: int | None) -> None:
        """Take over files of which the `.log` file is empty, whatever the indexes hold."""
        self.adopt(0, None, None)
        self.offset_index.reset(offset_index_size)
        self.time_index.reset(time_index_size)

    def write(self, data: Buffer) -> None:
        """Put batches at the end of the file; `account` must follow for each, in order."""
        self.was_used = True
        file = self._file or self._open()
        if self._max_timestamp == UNREAD:  # now, as `account` must not fail once this is written
            self._read_max_timestamp()
        if self._pending is not None:
            self._void_pending()
        file.write_at(self.size, data)

    def begin_write(self, data: Buffer) -> PendingWrite:
        """Return what another thread can `run` to put batches at the end of the file.

        They count once `end_write` has returned True and `account` was called for each. Whatever
        changes the segment before makes the write void.
        """
        self.was_used = True
        file = self._file or self._open()
        if self._max_timestamp == UNREAD:
            self._read_max_timestamp()
        if self._pending is not None:
            self._void_pending()
        self._pending = PendingWrite(file, self.size, data)
        return self._pending

    def end_write(self, pending: PendingWrite) -> bool:
        """Return whether a write still belongs here; raises OSError if it failed."""
        if pending is not self._pending:
            return False
        self._pending = None
        if pending.error is not None:
            raise pending.error
        return True

    def cut_back(self, size: int) -> None:
        """Undo a write that failed, as far as the disk lets us: the file ends at `size` again."""
        self.size = size
        self._tail_offset = NO_TAIL
        with suppress(OSError):
            self._void_pending()
            self.file.truncate(size)

    def account(self, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Note one written batch: file size, timestamps and, when due, index entries."""
        position = self.size
        self._tail_offset = base_offset
        self._tail_position = position
        self._tail_last_offset = last_offset
        if position == 0:
            self.known_first_timestamp = max_timestamp
        self.size = position + size
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self._bytes_since_index > self._index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self._max_timestamp, self._max_timestamp_offset)
            self.is_index_full = self.offset_index.is_full or self.time_index.is_full
            self._bytes_since_index = size
        else:
            self._bytes_since_index += size

    def account_header(self, header: BatchHeader) -> None:
        """As `account`, with the offsets from the batch header."""
        self.account(
            header.size_in_bytes, header.base_offset, header.last_offset, header.max_timestamp
        )

    def note_delay(self, header: BatchHeader, position: int) -> None:
        """Note a written batch with the delay bit, at a position in this segment."""
        if self.delays is None:
            self.delays = DelayIndex(self._disk.filesystem, self._directory, self.base_offset)
        kind = kind_of(header)
        self.delays.append(DelayEntry(header.base_offset, position, kind, header.max_timestamp))

    def adopt_delays(self, size: int) -> None:
        """Take over a delay index file of `size` bytes."""
        self.delays = DelayIndex(self._disk.filesystem, self._directory, self.base_offset, size)

    def rebuild_delays(self) -> bool:
        """Rebuild the delay index from the headers in the log, at once.

        Returns whether it differs from before. DamagedFileError, and no change, if the log cannot
        be walked.
        """
        if self.delays is None:
            self.delays = DelayIndex(self._disk.filesystem, self._directory, self.base_offset)
        try:
            return rebuild_at_once(self, self.delays, self._disk.filesystem)
        finally:
            if not self.delays.may_hold:
                self._disk.filesystem.remove(self.delays.path)
                self.delays = None

    def has_batch(self, entry: DelayEntry) -> bool:
        """Return whether there is a batch where an entry of the delay index points."""
        return self.file.read_at(entry.position, OFFSET_BYTES) == entry.offset.to_bytes(
            OFFSET_BYTES, "big", signed=True
        )

    def prepare_truncation(self, offset: int) -> Callable[[], None]:
        """Open the files needed to cut off the batch that holds `offset` and all after it.

        Returns a function that cuts, and opens nothing.
        """
        found = self.locate(offset)
        if found is None:
            return _do_nothing
        file = self.file
        indexes = (self.offset_index, self.time_index, self.aborted_index)
        cuts = [index.prepare_truncation(found.base_offset) for index in indexes]
        if self.delays is not None:
            cuts.append(self.delays.prepare_truncation(found.base_offset, self.has_batch))
        position = found.position

        def cut() -> None:
            assert position <= self.size, "the file would be filled up with zeros"
            self._void_pending()
            for cut_index in cuts:
                cut_index()
            file.truncate(position)
            self._disk.filesystem.remove(self._path(file_names.KEY_INDEX))  # of old content
            self._tail_offset = NO_TAIL
            self.size = position
            self._bytes_since_index = 0
            self._note_room()
            self._max_timestamp = UNREAD
            if position == 0:
                self.known_first_timestamp = UNREAD

        return cut

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the headers in the log."""
        file = self.file
        self.clear_indexes()
        size, self.size = self.size, 0
        try:
            for _, header in walk_headers(file, 0, size, CHUNK_BYTES):
                self.account_header(header)
        except DamagedFileError as error:
            raise DamagedFileError(f"{self.path}: {error.message}") from None
        finally:
            if self.size != size:
                self._tail_offset = NO_TAIL
            self.size = size  # damage in the log itself must not make it shorter

    def clear_indexes(self) -> None:
        """Empty both indexes and forget the timestamps."""
        for clear in [self.offset_index.prepare_clear(), self.time_index.prepare_clear()]:
            clear()
        self.forget_timestamps()

    def forget_timestamps(self) -> None:
        """Before `account` is called for all batches from the start, or from a known entry."""
        self._bytes_since_index = 0
        self._tail_offset = NO_TAIL
        self._note_room()
        self.known_first_timestamp = UNREAD
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last()

    def seal(self) -> None:
        """Write the last time entry and cut the indexes to size: at a roll or a clean close."""
        assert self.offset_index.newest_position < max(self.size, 1), self
        self._void_pending()
        if self.max_timestamp >= 0:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self.aborted_index.write_pending()
        if self.delays is not None:
            self.delays.write_pending()
        self.offset_index.trim()
        self.time_index.trim()

    def sync(self) -> None:
        """Wait until all that was written is on the disk; safe to call from another thread."""
        filesystem = self._disk.filesystem
        paths = [self.offset_index.path, self.time_index.path, self.aborted_index.path]
        if self.delays is not None:
            paths.append(self.delays.path)
        # A segment that is deleted meanwhile needs no flush. The handles are its own, since the
        # shared ones belong to the thread that appends.
        with suppress(FileNotFoundError):
            found = [self.path, *(path for path in paths if filesystem.exists(path))]
            sync_all_of(filesystem, [filesystem.open(path) for path in found])

    def write_index_entries(self) -> None:
        """Write the index entries that wait in memory."""
        assert self.offset_index.newest_position < max(self.size, 1), self
        self.offset_index.write_pending()
        self.time_index.write_pending()
        self.aborted_index.write_pending()
        if self.delays is not None:
            self.delays.write_pending()

    def close(self) -> None:
        """Write pending entries and close all files; the segment can still be used."""
        self.write_index_entries()
        self.forget()

    def forget(self) -> None:
        """Close all files and write nothing."""
        with suppress(OSError):  # the disk is gone: the next start checks the files
            self._void_pending()
        if self._file is not None:
            self._file = None
            self._disk.files.dismiss(self)
        self.offset_index.forget()
        self.time_index.forget()

    def relocate(self, directory: str) -> None:
        """Note that the files are in another directory; open ones stay open."""
        self._directory = directory
        for index in (self.offset_index, self.time_index, self.aborted_index, self.delays):
            if index is not None:
                index.relocate(directory)

    def mark_deleted(self) -> list[str]:
        """Rename the files with `.deleted`, and return what remains to be removed later."""
        filesystem = self._disk.filesystem
        self.forget()
        paths = []
        for suffix in file_names.SEGMENT_SUFFIXES:
            path = self._path(suffix)
            if filesystem.exists(path):
                filesystem.rename(path, path + file_names.DELETED)
                paths.append(path + file_names.DELETED)
        return paths

    def _void_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and pending.void():
            pending.file.truncate(self.size)

    def _note_room(self) -> None:
        self.is_index_full = self.offset_index.is_full or self.time_index.is_full


def _do_nothing() -> None:
    """Cut nothing off: the segment ends before."""
