"""Reading a log: regions of its files by offset, and look-ups by time and for transactions.

Every method may raise LogDirectoryError; the directory is offline then, and so is the log.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from storage.log.segments import WHOLE_LOG
from storage.segment.slices import Slice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.records.batch import BatchHeader
    from storage.log.log_contents import LogContents
    from storage.segment.aborted_index import AbortedTransaction
    from storage.segment.time_search import Found, Search


class LogReader:
    """Reads by offset: checks them against the log's offsets, and reads from the segments."""

    __slots__ = ("_offsets", "_place", "_segments")

    def __init__(self, contents: LogContents) -> None:
        self._place = contents.files.place
        self._segments = contents.files.segments
        self._offsets = contents.offsets

    def read(
        self, offset: int, max_bytes: int, upper_offset: int, *, minimum_one_batch: bool = True
    ) -> Slice:
        """Region of a file with the batches from `offset` on and before `upper_offset`.

        It begins with the whole batch in which `offset` lies, and ends at `max_bytes`, which may be
        within a batch. If that is less than the first batch the region is that batch, or, without
        `minimum_one_batch`, empty. Raises ApiError OFFSET_OUT_OF_RANGE outside
        [log start, log end]; at the log end, and at or past `upper_offset`, the slice is empty.
        """
        offsets = self._offsets
        end_offset = offsets.log_end_offset
        if not offsets.log_start_offset <= offset <= end_offset:
            raise self.out_of_range(offset)
        if offset >= upper_offset or offset == end_offset:
            return Slice(None, 0, 0, offset)
        directory = self._place.directory
        if directory.failure is not None:
            raise directory.failure.with_traceback(None)
        bound = upper_offset if upper_offset < end_offset else WHOLE_LOG
        try:  # as `with directory`, for two calls less
            return self._segments.read(
                offset, max_bytes, bound, minimum_one_batch=minimum_one_batch
            )
        except OSError as error:
            raise directory.fail(error) from error

    def headers_in(self, piece: Slice) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch header in a piece that was read."""
        with self._place.directory:
            yield from piece.headers()

    def read_batches(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        """Whole batches that hold offsets of [from, to), for coordinators that replay them."""
        if from_offset >= to_offset:
            return
        to_offset = min(to_offset, self._offsets.log_end_offset)
        with self._place.directory:
            yield from self._segments.batches(from_offset, to_offset)

    def search_timestamp(self, timestamp_ms: int) -> Search[Found]:
        """First record at or after `timestamp_ms`; see `storage.segment.time_search`.

        The result holds for the log at the end of the search, which restarts after a truncation.
        """
        return (yield from self._search(partial(self._segments.search_timestamp, timestamp_ms)))

    def search_max_timestamp(self) -> Search[Found]:
        """First record with the greatest timestamp."""
        return (yield from self._search(self._segments.search_max_timestamp))

    def _search(self, begin: Callable[[int], Search[Found]]) -> Search[Found]:
        offsets = self._offsets
        while True:
            truncations = offsets.truncations
            with self._place.directory:
                found = yield from begin(offsets.log_start_offset)
            is_gone = found is not None and found.offset < offsets.log_start_offset
            if truncations == offsets.truncations and not is_gone:
                return found

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap [from, to), by first offset."""
        with self._place.directory:
            found = self._segments.aborted_transactions(from_offset, to_offset)
        return sorted(found, key=attrgetter("first_offset"))

    def aborted_in(self, piece: Slice, from_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that a read_committed consumer must skip in `piece`.

        `from_offset` is the fetch offset. Nearly free for a log without recent aborts.
        """
        with self._place.directory:
            if not self._segments.has_aborted_after(from_offset):
                return []
            end = self._segments.end_of(piece)
        return self.aborted_transactions(from_offset, end)

    def out_of_range(self, offset: int) -> ApiError:
        """Return what to raise for an offset that the log does not hold."""
        offsets = self._offsets
        return ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {self._place.name} is outside "
            f"[{offsets.log_start_offset}, {offsets.log_end_offset}]",
        )
