"""The segments of one log in the order of their offsets, and reading across them.

The last one is active: it alone is appended to. There is always at least one.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from protocol.records.batch import HEADER_BYTES, parse_header
from storage.errors import DamagedFileError
from storage.segment.batch_scan import CHUNK_BYTES
from storage.segment.slices import Slice
from storage.segment.time_search import latest_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.segment.aborted_index import AbortedTransaction
    from storage.segment.batch_scan import BatchPlace
    from storage.segment.segment import Segment
    from storage.segment.time_search import Found, Search
    from storage.segment.timestamp_offset import TimestampOffset

WHOLE_LOG: Final = 2**63
"""As upper offset: read to the end."""


class Segments:
    """Look-ups by offset and by time over all segments."""

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: list[Segment]) -> None:
        """Take over `segments`, at least one, sorted by base offset."""
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def size_in_bytes(self) -> int:
        """Bytes in all `.log` files."""
        return sum(segment.size for segment in self._segments)

    @property
    def base_offsets(self) -> list[int]:
        """Base offset of each segment."""
        return self._bases

    def add(self, segment: Segment) -> None:
        """Put a new active segment at the end."""
        assert segment.base_offset > self._bases[-1], (segment, self._bases[-1])
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def take_first(self, count: int) -> list[Segment]:
        """Remove and return the oldest segments; one at least remains."""
        return self._take(slice(0, count))

    def take_from(self, offset: int) -> list[Segment]:
        """Remove and return the segments that begin after `offset`; one at least remains."""
        return self._take(slice(max(1, bisect_right(self._bases, offset)), None))

    def replace_active(self, segment: Segment) -> None:
        """Put `segment` in place of the active one."""
        self._segments[-1] = self.active = segment
        self._bases[-1] = segment.base_offset

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Remove and return all segments, with `segment` in their place."""
        removed = self._segments
        self._segments = [segment]
        self._bases = [segment.base_offset]
        self.active = segment
        return removed

    def become(self, others: Segments) -> None:
        """Take over the segments of another log; that one must not be used any more."""
        self._segments, self._bases, self.active = others._segments, others._bases, others.active

    def replace(self, first: int, count: int, segment: Segment) -> None:
        """Put `segment` in place of `count` others from index `first` on; not the active one."""
        assert first + count < len(self._segments)
        self._segments[first : first + count] = [segment]
        self._bases[first : first + count] = [segment.base_offset]

    def floor(self, offset: int) -> int:
        """Index of the segment in which `offset` lies, or would."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def locate(self, offset: int) -> tuple[Segment, BatchPlace] | None:
        """First batch that ends at or after `offset`, and its segment."""
        for index in range(self.floor(offset), len(self._segments)):
            segment = self._segments[index]
            place = segment.locate(offset)
            if place is not None:
                return segment, place
        return None

    def read(
        self, offset: int, max_bytes: int, upper_offset: int, *, minimum_one_batch: bool
    ) -> Slice:
        """Batches of one segment from the one that holds `offset`, and before `upper_offset`."""
        found = self.locate(offset)
        if found is None or found[1].base_offset >= upper_offset:
            return Slice(None, 0, 0, offset)
        segment, place = found
        position, size = place.position, place.size
        assert place.last_offset >= offset, (segment, place, offset)
        assert position < segment.size, (segment, place)
        end = self._end_position(segment, upper_offset)
        limit = max(max_bytes, size) if minimum_one_batch else max_bytes
        if size > limit or position >= end:
            return Slice(None, 0, 0, place.base_offset, size)
        length = min(limit, end - position)
        return Slice(segment.file, position, length, place.base_offset, size)

    def end_of(self, piece: Slice) -> int:
        """Offset after the last batch whose header is in `piece`."""
        segment = self._segments[self.floor(piece.first_offset)]
        return segment.next_offset_at(piece.position + piece.length)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap [from, to), in the order of their markers."""
        found: list[AbortedTransaction] = []
        for index in range(self.floor(from_offset), len(self._segments)):
            in_segment, is_all = self._segments[index].aborted_index.overlapping(
                from_offset, to_offset
            )
            found += in_segment
            if is_all:
                break
        return found

    def has_aborted_after(self, offset: int) -> bool:
        """Return whether a transaction was aborted in the segment of `offset` or a later one."""
        first = self.floor(offset)
        return any(len(self._segments[i].aborted_index) for i in range(first, len(self._segments)))

    def batches(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        """Whole batches that hold offsets of [from_offset, to_offset), in order.

        The log may change between two of them, compaction and retention included: a segment that
        was begun is read to its end, whatever has its name by then, and the next one is that in
        which the following offset lies now.
        """
        offset = from_offset
        while (found := self._from(offset)) is not None:
            for batch in _whole_batches(*found):
                header = parse_header(batch)
                if header.base_offset >= to_offset:
                    return
                offset = header.next_offset
                yield batch

    def _from(self, offset: int) -> tuple[Segment, int] | None:
        """Segment and position of the first batch that ends at or after `offset`."""
        for index in range(self.floor(offset), len(self._segments)):
            segment = self._segments[index]
            if offset <= segment.base_offset and segment.size:
                return segment, 0  # without its index, which may not be loaded yet
            place = segment.locate(offset)
            if place is not None:
                return segment, place.position
        return None

    def search_timestamp(self, timestamp: int, from_offset: int) -> Search[Found]:
        """First record at or after `from_offset` that is not earlier than `timestamp`.

        The log may change between two steps. Segments that begin after the one that was looked
        through come next, whichever these are by then.
        """
        index = self.floor(from_offset)
        while index < len(self._segments):
            segment = self._segments[index]
            if segment.max_timestamp >= timestamp:
                found = yield from segment.search_timestamp(timestamp, from_offset)
                if found is not None:
                    return found
            yield None
            index = bisect_right(self._bases, segment.base_offset)
        return None

    def search_max_timestamp(self, from_offset: int) -> Search[Found]:
        """First record that has the greatest timestamp of all at or after `from_offset`."""
        segments = []
        for segment in self._segments[self.floor(from_offset) :]:
            segments.append((-segment.max_timestamp, segment))  # which may have to be read
            yield None
        best: Found = None
        for negative, segment in sorted(segments, key=itemgetter(0)):
            if best is not None and -negative < best.timestamp:
                break
            found = yield from segment.search_max_timestamp()
            if found is None or found.offset < from_offset:
                # It lies before the log start, or compaction has emptied the batch that had it.
                found = yield from latest_from(segment, from_offset)
            # The first of equals may lie in a segment that is looked at later: one whose greatest
            # timestamp was that of a batch which compaction has emptied comes before it.
            if found is not None and (best is None or _is_sooner(found, best)):
                best = found
        return best

    def _end_position(self, segment: Segment, upper_offset: int) -> int:
        """File position in `segment` at which a read must stop, to exclude `upper_offset`."""
        if upper_offset == WHOLE_LOG:
            return segment.size
        following = self.floor(segment.base_offset) + 1
        if following < len(self._bases) and upper_offset >= self._bases[following]:
            return segment.size
        found = segment.locate(upper_offset)
        return segment.size if found is None else found.position

    def _take(self, which: slice) -> list[Segment]:
        removed = self._segments[which]
        del self._segments[which], self._bases[which]
        assert self._segments, "a log without a segment"
        self.active = self._segments[-1]
        return removed


def _whole_batches(segment: Segment, position: int) -> Iterator[memoryview]:
    """Batches from `position` to where the segment ends now, read in large pieces.

    It keeps the file, which may lose its name meanwhile. Raises DamagedFileError where no whole
    batch is.
    """
    wanted = CHUNK_BYTES
    file, end = segment.file, segment.size
    while position < end:
        chunk = memoryview(file.read_at(position, min(wanted, end - position)))
        start = 0
        wanted = CHUNK_BYTES
        while start + HEADER_BYTES <= len(chunk):
            size = parse_header(chunk, start).size_in_bytes
            if not HEADER_BYTES <= size <= end - position - start:
                raise DamagedFileError(f"{segment.path}: no batch at byte {position + start}")
            if start + size > len(chunk):
                wanted = max(CHUNK_BYTES, size)
                break
            yield chunk[start : start + size]
            start += size
        if start == 0 and wanted == CHUNK_BYTES:
            raise DamagedFileError(f"{segment.path}: no batch at byte {position}")
        position += start


def _is_sooner(one: TimestampOffset, other: TimestampOffset) -> bool:
    """Return whether a record has a greater timestamp, or the same and comes first."""
    return (one.timestamp, -one.offset) > (other.timestamp, -other.offset)
