"""Find records in one segment, with its index or without.

Without one, or where it is not sound, the segment is read as a whole. In either case a batch is
taken apart only if the bytes that are looked for stand somewhere in it.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from protocol.records.record import Record, parse_record
from protocol.records.spans import record_spans
from storage.errors import DamagedFileError
from storage.key_index.batch_source import batches_in
from storage.key_index.index_reader import IndexReader
from storage.key_index.placement import index_path
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.records.batch import BatchHeader
    from storage.filesystem import FileSystem
    from storage.key_index.batch_source import StoredBatch
    from storage.key_index.query import Query


class Stretch(NamedTuple):
    """A segment, as far as it may be read."""

    directory: str
    base_offset: int
    size: int
    """Bytes of its `.log` file to be searched; the exact size of a closed segment."""
    is_closed: bool


class Found(NamedTuple):
    """A record, and the batch that it stands in."""

    record: Record
    batch: BatchHeader


class SegmentSearch:
    """One look-up in one segment.

    It keeps the files that it opens: it is not hurt if they are renamed or deleted meanwhile.
    """

    def __init__(
        self, filesystem: FileSystem, stretch: Stretch, note_read: Callable[[int, int], None]
    ) -> None:
        """Open the log. Raises FileNotFoundError if it is gone, OSError.

        `note_read` gets the number of bytes read, and the offset before which everything is
        searched; an exception from it ends the search.
        """
        self._filesystem = filesystem
        self._stretch = stretch
        self._note_read = note_read
        self._next_offset = stretch.base_offset
        self.path = file_names.segment_file(stretch.directory, stretch.base_offset, file_names.LOG)
        self._log = filesystem.open(self.path)
        self.damage: str | None = None
        """Reason why the index could not be used, if there is one."""
        self.has_index = False

    def is_current(self) -> bool:
        """Return whether the opened log is the intended one, by its size."""
        size = self._log.size()
        return size == self._stretch.size if self._stretch.is_closed else size >= self._stretch.size

    def run(self, query: Query, offsets: tuple[int, int]) -> Iterator[Found]:
        """Records from an offset on and before another, in their order.

        Raises ApiError (DamagedFileError among them) where the log is not sound, and OSError.
        """
        ranges = self._indexed_ranges(query)
        if ranges is None:
            ranges = [(0, self._stretch.size)]
        for start, end in ranges:
            for batch in batches_in(self._log, self.path, start, end, self._note):
                header = batch.header
                self._next_offset = header.base_offset
                if header.base_offset >= offsets[1]:
                    return
                if (
                    header.next_offset > offsets[0]
                    and header.max_timestamp >= query.from_ms
                    and not header.is_control
                ):
                    for record in _matching(batch, query):
                        if offsets[0] <= record.offset < offsets[1]:
                            yield Found(record, header)

    def _indexed_ranges(self, query: Query) -> list[tuple[int, int]] | None:
        """Byte ranges from the index; None if there is no usable index."""
        stretch = self._stretch
        if not stretch.is_closed:
            return None
        path = index_path(stretch.directory, stretch.base_offset)
        with suppress(FileNotFoundError):
            try:
                reader = IndexReader(self._filesystem.open(path), path)
                reader.check(self._log, stretch.base_offset, stretch.size)
                ranges = list(reader.find(query.hash, (query.from_ms, query.to_ms)))
            except DamagedFileError as error:
                self.damage = error.message
            except OSError as error:
                if isinstance(error, FileNotFoundError):
                    raise
                self.damage = f"{path}: {error.strerror}"
            else:
                self.has_index = True
                return ranges
        return None

    def _note(self, count: int) -> None:
        self._note_read(count, self._next_offset)


def _matching(batch: StoredBatch, query: Query) -> Iterator[Record]:
    """Records of a batch that are looked for."""
    needle = query.needle
    data, start, end = batch.body()
    at = data.find(needle, start, end)
    if at < 0:
        return
    header = batch.header
    body = data[start:end]
    starts = record_spans(body, header).starts
    append_time = header.max_timestamp if header.is_log_append_time else None
    at -= start
    while at >= 0:
        index = bisect_right(starts, at) - 1
        record = _record(body, starts[index], header, append_time)
        if query.matches(record):
            yield record
        if index + 1 == len(starts):
            return
        at = body.find(needle, starts[index + 1])


def _record(body: bytes, position: int, header: BatchHeader, append_time: int | None) -> Record:
    fields, _ = parse_record(body, position)
    timestamp_delta, offset_delta, key, value, headers = fields
    timestamp = header.base_timestamp + timestamp_delta if append_time is None else append_time
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers)
