"""One segment of a log as it is read; how it is written is in `segment`."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from protocol.records.batch import HEADER_BYTES
from storage.errors import DamagedFileError
from storage.segment import file_names
from storage.segment.aborted_index import AbortedIndex
from storage.segment.batch_scan import (
    CHUNK_BYTES,
    HOP_BYTES,
    MAX_RELATIVE_OFFSET,
    BatchPlace,
    find_batch,
    walk_headers,
)
from storage.segment.sparse_index import OffsetIndex
from storage.segment.time_index import TimeIndex
from storage.segment.time_search import first_not_earlier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from config.topic import TopicConfig
    from protocol.records.batch import BatchHeader
    from storage.delays.delay_index import DelayIndex
    from storage.disk import Disk
    from storage.filesystem import File
    from storage.segment.pending_write import PendingWrite
    from storage.segment.time_search import Found, Search

LOGGER = logging.getLogger(__name__)
T = TypeVar("T")

NO_TIMESTAMP: Final = -1
UNREAD: Final = -2
"""A timestamp that stands in a file and has not been needed yet."""
NO_TAIL: Final = 2**63
"""Greater than every offset: the last batch is not known by its position."""


class SegmentReading(ABC):
    """Properties and look-ups of a segment; offsets are absolute throughout."""

    __slots__ = (
        "_bytes_since_index",
        "_directory",
        "_disk",
        "_file",
        "_index_interval_bytes",
        "_is_end_doubtful",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_pending",
        "_tail_last_offset",
        "_tail_offset",
        "_tail_position",
        "aborted_index",
        "base_offset",
        "created_ms",
        "delays",
        "is_index_full",
        "known_first_timestamp",
        "offset_index",
        "size",
        "time_index",
        "was_used",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, config: TopicConfig, created_ms: int
    ) -> None:
        """Take over the files in `directory`; nothing is opened or created."""
        self.base_offset = base_offset
        self.size = 0
        self.created_ms = created_ms
        """Time at which the segment began, or its file was changed: stands in for timestamps."""
        index_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(disk, directory, base_offset, index_bytes)
        self.time_index = TimeIndex(disk, directory, base_offset, index_bytes)
        self.aborted_index = AbortedIndex(disk.filesystem, directory, base_offset)
        self.delays: DelayIndex | None = None
        """Index of the batches that concern delays; None if there never were any."""
        self.is_index_full = False
        """One of the indexes has no room for another entry."""
        self.was_used = False
        self._disk = disk
        self._directory = directory
        self._index_interval_bytes = config.index_interval_bytes
        self._file: File | None = None
        self._is_end_doubtful = False
        """True if `size` is from the close, or the file, and has to be checked."""
        self._pending: PendingWrite | None = None
        self._bytes_since_index = 0
        self.known_first_timestamp = UNREAD
        """As `first_timestamp`, if it was needed before; less than 0 otherwise."""
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._tail_offset = NO_TAIL
        self._tail_last_offset = base_offset
        self._tail_position = 0

    def __repr__(self) -> str:
        return f"Segment({self.path!r}, size={self.size})"

    @property
    def path(self) -> str:
        """Path of the `.log` file."""
        return self._path(file_names.LOG)

    @property
    def file(self) -> File:
        """The `.log` file, opened if need be. A caller that keeps it keeps it open."""
        self.was_used = True
        return self._file or self._open()

    @property
    def max_timestamp(self) -> int:
        """Greatest timestamp in the segment; -1 when it has none."""
        if self._max_timestamp == UNREAD:
            self._read_max_timestamp()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the first batch that has the greatest timestamp."""
        if self._max_timestamp == UNREAD:
            self._read_max_timestamp()
        return self._max_timestamp_offset

    @property
    def age_timestamp(self) -> int:
        """Timestamp for retention by time: the greatest of its records, else that of its file."""
        timestamp = self.max_timestamp
        return timestamp if timestamp >= 0 else self.created_ms

    @property
    def first_timestamp(self) -> int:
        """Greatest timestamp of the first batch, from which `segment.ms` counts; -1: empty."""
        if self.known_first_timestamp == UNREAD:
            header = next(self.walk(0, self.size), None)
            if header is None:
                return NO_TIMESTAMP
            self.known_first_timestamp = header[1].max_timestamp
        return self.known_first_timestamp

    def age_ms(self, timestamp: int, now_ms: int) -> int:
        """Time from the first batch to one with `timestamp`; by the clock if it has none."""
        first = self.first_timestamp
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    def fits(self, offset: int) -> bool:
        """Return whether `offset` fits into an offset relative to the base."""
        return offset - self.base_offset <= MAX_RELATIVE_OFFSET

    def walk(
        self, position: int, end: int, step: int = HOP_BYTES
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of the batches between two positions, as `walk_headers`."""
        if position >= min(end, self.size):
            return
        file = self.file  # which may turn out to be shorter
        try:
            yield from walk_headers(file, position, min(end, self.size), step)
        except DamagedFileError as error:
            raise DamagedFileError(f"{self.path}: {error.message}") from None

    def locate(self, offset: int) -> BatchPlace | None:
        """First batch that ends at or after `offset`; None when the segment ends before it."""
        if self._tail_offset <= offset <= self._tail_last_offset:
            # The batch appended last, which is what most consumers ask for.
            position = self._tail_position
            assert position < self.size, self
            return BatchPlace(
                position, self.size - position, self._tail_offset, self._tail_last_offset
            )
        try:  # as `_with_sound_indexes`, for two calls less
            return self._locate(offset)
        except DamagedFileError as error:
            self._mend_indexes(error)
            return self._locate(offset)

    def next_offset(self) -> int:
        """Offset after the last batch, read from the last index entry on."""
        return self.next_offset_at(self.size)

    def next_offset_at(self, position: int) -> int:
        """Offset after the last batch whose header stands whole before `position`."""
        return self._with_sound_indexes(lambda: self._read_next_offset(position))

    def end_of_batches(self) -> tuple[int, int]:
        """Offset after the last whole batch, and the byte at which that ends.

        What follows in the file is none. Read from the last index entry on, or from the start if
        no batch is there.
        """
        entry = self.offset_index.last_before(self.size - HEADER_BYTES + 1)
        if 0 < entry.position < self.size:
            offset, end = self._end_of_whole(entry.position)
            if end > entry.position:
                return offset, end
        return self._end_of_whole(0)

    def doubt_end(self) -> None:
        """Have the end of a closed file looked into before anything else is read of it."""
        self._is_end_doubtful = True

    def drop_partial_batch(self) -> tuple[int, int]:
        """Have a closed segment end with its last whole batch, as its file may have been cut.

        The rest would stop each consumer that reaches it. Returns the offset after the batch, and
        the number of bytes dropped. The file stays as it is.
        """
        self._is_end_doubtful = False
        said, self.size = self.size, min(self.size, self.file.size()) if self.size else 0
        offset, end = self.end_of_batches()
        if end < said:
            self.size = end
            self.rebuild_indexes()
        return offset, said - end

    def headers_before(self, position: int, stretch: int) -> tuple[int, list[BatchHeader]]:
        """Headers of about the last `stretch` bytes of batches before one at `position`.

        Returns where the first of them begins, and the headers in their order.
        """
        return self._with_sound_indexes(lambda: self._read_headers_before(position, stretch))

    def search_timestamp(self, timestamp: int, from_offset: int) -> Search[Found]:
        """First record at or after `from_offset` that is not earlier than `timestamp`."""
        try:
            return (yield from self._search_timestamp(timestamp, from_offset))
        except DamagedFileError as error:
            self._mend_indexes(error)
            return (yield from self._search_timestamp(timestamp, from_offset))

    def search_max_timestamp(self) -> Search[Found]:
        """First record with the greatest timestamp, which is -1 where none has one."""
        return (yield from self.search_timestamp(self.max_timestamp, self.base_offset))

    def release(self) -> None:
        """Let the file handle go."""
        self._file = None

    @abstractmethod
    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the headers in the log."""

    def _with_sound_indexes(self, look_up: Callable[[], T]) -> T:
        """Result of `look_up`; if it meets a damaged index, that is rebuilt first."""
        try:
            return look_up()
        except DamagedFileError as error:
            self._mend_indexes(error)
            return look_up()

    def _mend_indexes(self, error: DamagedFileError) -> None:
        LOGGER.warning("%s; rebuilding the indexes from %s", error.message, self.path)
        self.rebuild_indexes()

    def _checked_position(self, position: int) -> int:
        if position < 0 or (position and position >= self.size):
            raise DamagedFileError(f"{self.offset_index.path}: points past the end of the log")
        return position

    def _locate(self, offset: int) -> BatchPlace | None:
        if not self.size:
            return None
        file = self.file  # which may turn out to be shorter
        start = self._checked_position(self.offset_index.lookup(offset).position)
        size = self.size
        if start >= size:
            return None
        found = find_batch(file, start, size, offset)
        # The indexed batch ends at or before `offset`, so if it is the one found it ends there.
        if found is not None and found.position == start != 0 and found.last_offset != offset:
            raise DamagedFileError(f"{self.offset_index.path}: leads past offset {offset}")
        return found

    def _search_timestamp(self, timestamp: int, from_offset: int) -> Search[Found]:
        start = max(self.time_index.lookup(timestamp).offset, from_offset)
        position = self._checked_position(self.offset_index.lookup(start).position)
        return (yield from first_not_earlier(self, position, timestamp, from_offset))

    def _read_next_offset(self, end: int) -> int:
        offset = self.base_offset
        entry = self.offset_index.last_before(end - HEADER_BYTES + 1)
        for _, header in self.walk(self._checked_position(entry.position), end):
            offset = header.next_offset
        return offset

    def _end_of_whole(self, start: int) -> tuple[int, int]:
        offset, end = self.base_offset, start
        with suppress(DamagedFileError):
            for position, header in self.walk(start, self.size, CHUNK_BYTES):
                if position + header.size_in_bytes > self.size:
                    break
                offset, end = header.next_offset, position + header.size_in_bytes
        return offset, end

    def _read_headers_before(self, position: int, stretch: int) -> tuple[int, list[BatchHeader]]:
        start = 0
        if position > stretch:
            entry = self.offset_index.last_before(position - stretch + 1)
            start = self._checked_position(entry.position)
        step = min(stretch, CHUNK_BYTES)
        return start, [header for _, header in walk_headers(self.file, start, position, step)]

    def _read_max_timestamp(self) -> None:
        self._with_sound_indexes(self._walk_to_max_timestamp)

    def _walk_to_max_timestamp(self) -> None:
        self._max_timestamp, self._max_timestamp_offset = self.time_index.last()
        start = self._checked_position(self.offset_index.last().position)
        for _, header in self.walk(start, self.size):
            if header.max_timestamp > self._max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._max_timestamp_offset = header.last_offset

    def _open(self) -> File:
        self._disk.files.make_room()
        file = self._disk.filesystem.open(self.path)
        self._disk.files.admit(self)
        self._file = file
        if self._is_end_doubtful:
            self._look_into_end()
        return file

    def _look_into_end(self) -> None:
        said = self.size
        offset, lost = self.drop_partial_batch()
        if lost:
            LOGGER.error(
                "%s was cut or damaged since it was closed, the last %d of its %d bytes are gone "
                "or no whole batch: from offset %d on it has nothing",
                *(self.path, lost, said, offset),
            )

    def _path(self, suffix: str) -> str:
        return file_names.segment_file(self._directory, self.base_offset, suffix)
