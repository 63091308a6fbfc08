"""A new segment in `.cleaned` files, which are ignored by all readers until they are swapped in.

The `.log` file is written as data comes. At intervals a write-out of the new pages is started,
after waiting for the previous one: the disk works meanwhile, and never gets a gigabyte at once. The
file is fsynced once, at the end: each fsync may make the broker's own writes wait for the file
system's journal. The indexes are small and kept in memory until the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.records.batch import DELAY_BIT
from storage.delays.delay_index import packed_entry
from storage.filesystem import sync_all_of
from storage.segment import file_names
from storage.segment.aborted_index import ENTRY as ABORTED_ENTRY
from storage.segment.aborted_index import VERSION as ABORTED_VERSION
from storage.segment.sparse_index import OffsetIndex
from storage.segment.time_index import TimeIndex

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.compaction.job import CleaningJob
    from storage.filesystem import File, FileSystem
    from storage.segment.aborted_index import AbortedTransaction

WRITE_OUT_BYTES: Final = 16 << 20
"""Bytes per write-out to the disk; leaves little for the final fsync."""
NO_TIMESTAMP: Final = -1


class CleanedSegment:
    """Takes batches in order, then `finish`, then `sync`."""

    def __init__(self, filesystem: FileSystem, job: CleaningJob, base_offset: int) -> None:
        """Create the `.log.cleaned` file, empty."""
        self._filesystem = filesystem
        self._directory = job.directory
        self._base_offset = base_offset
        self._limits = job.segment_limits
        self._buffer_bytes = job.limits.buffer_bytes
        self._file = filesystem.open(self._path(file_names.LOG), create=True)
        self._file.truncate(0)
        self.size = 0
        self._written = 0
        self._begun = 0
        self._written_out = 0
        self._waiting: list[Buffer] = []
        self._files: list[File] = []
        self._offset_index = bytearray()
        self._time_index = bytearray()
        self._aborted = bytearray()
        self._delays = bytearray()
        self._bytes_since_index = 0
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._indexed_timestamp = NO_TIMESTAMP

    def append(self, header: BatchHeader, batch: Buffer) -> int:
        """Add a batch, which must stay as it is for a while; returns the bytes that were written.

        Of `header` only what compaction does not change is looked at, and the timestamp.
        """
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._bytes_since_index > self._limits.index_interval_bytes:
            self._add_index_entries(header.last_offset)
            self._bytes_since_index = 0
        if header.attributes & DELAY_BIT:
            self._delays += packed_entry(header, self.size)
        self._bytes_since_index += len(batch)
        self._waiting.append(batch)
        self.size += len(batch)
        if self.size - self._written >= self._buffer_bytes:
            return self._write()
        return 0

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """Keep an entry of the transaction index."""
        self._aborted += ABORTED_ENTRY.pack(ABORTED_VERSION, *aborted)

    def finish(self, modified_ms: int) -> tuple[int, int, bool, int]:
        """Write everything.

        Returns the sizes of offset and time index, whether there is a transaction index, and the
        size of the delay index.
        """
        self._write()
        self._add_time_entry()
        files = [
            self._file,
            self._put(file_names.OFFSET_INDEX, self._offset_index),
            self._put(file_names.TIME_INDEX, self._time_index),
        ]
        if self._aborted:
            files.append(self._put(file_names.TRANSACTION_INDEX, self._aborted))
        if self._delays:
            files.append(self._put(file_names.DELAY_INDEX, self._delays))
        self._files = files
        self._filesystem.set_modified(self._path(file_names.LOG), modified_ms)
        sizes = len(self._offset_index), len(self._time_index)
        return *sizes, bool(self._aborted), len(self._delays)

    def sync(self) -> None:
        """Return when everything is on the disk, on whichever thread."""
        self._wait_until(self._written)
        sync_all_of(self._filesystem, self._files)

    def _write(self) -> int:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._file.write_at(self._written, data)
        self._written += len(data)
        if self._written - self._begun >= WRITE_OUT_BYTES:
            self._wait_until(self._begun)
            self._file.begin_write_out(self._begun, self._written - self._begun)
            self._begun = self._written
        return len(data)

    def _wait_until(self, end: int) -> None:
        if end > self._written_out:
            self._file.write_out(self._written_out, end - self._written_out)
            self._written_out = end

    def _add_index_entries(self, last_offset: int) -> None:
        entry = OffsetIndex.entry
        if len(self._offset_index) + entry.size <= self._limits.index_bytes:
            self._offset_index += entry.pack(last_offset - self._base_offset, self.size)
            self._add_time_entry()

    def _add_time_entry(self) -> None:
        entry = TimeIndex.entry
        has_room = len(self._time_index) + entry.size <= self._limits.index_bytes
        if self._max_timestamp > self._indexed_timestamp and has_room:
            offset = self._max_timestamp_offset - self._base_offset
            self._time_index += entry.pack(self._max_timestamp, offset)
            self._indexed_timestamp = self._max_timestamp

    def _put(self, suffix: str, content: bytearray) -> File:
        file = self._filesystem.open(self._path(suffix), create=True)
        file.truncate(0)
        file.write_at(0, content)
        return file

    def _path(self, suffix: str) -> str:
        path = file_names.segment_file(self._directory, self._base_offset, suffix)
        return path + file_names.CLEANED
