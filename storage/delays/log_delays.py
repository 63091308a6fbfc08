"""What of a log has to do with delays: waiting batches, delivered ones, ends of transactions.

A log without any, as nearly all are, has no file for them and pays a look at a field per segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.delivered_batch import NOTHING_DELIVERED, DeliveryPoint, parse_point
from protocol.delays.relay_batch import Relay, parse_relay
from protocol.delays.waiting_batch import FRONT_BYTES, WAITING, parse_front, parse_number
from protocol.records.batch import DELAY_BIT, HEADER_BYTES, BatchHeader, parse_header
from storage.delays.delay_index import DelayEntry, DelayKind, kind_of
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.log.log_contents import LogContents
    from storage.segment.segment import Segment

NOTHING_WAITS: Final = 2**63
"""Greater than every offset: retention may delete all."""


class WaitingRecord(NamedTuple):
    """One record that waits, or did."""

    header: BatchHeader
    """Of the batch in which it waits."""
    received_ms: int
    number: int
    """When it is to be delivered (`protocol.delays.delay_headers`)."""


class LogDelays:
    """Look-ups in one log. Made when needed; every method may raise LogDirectoryError."""

    __slots__ = ("_offsets", "_place", "_segments")

    def __init__(self, contents: LogContents) -> None:
        self._place = contents.files.place
        self._segments = contents.files.segments
        self._offsets = contents.offsets

    @property
    def exist(self) -> bool:
        """Whether the log has a batch that has to do with delays."""
        return any(segment.delays is not None and len(segment.delays) for segment in self._segments)

    def entries_from(self, offset: int) -> Iterator[DelayEntry]:
        """Entries of batches at or after `offset`, in order, some at a time.

        The log may grow or lose its oldest segments meanwhile: the end is where nothing more was
        when that was asked for.
        """
        with self._place.directory:
            while (segment := self._segment_from(offset)) is not None:
                assert segment.delays is not None
                before = offset
                is_there = True
                for entry in segment.delays.entries_from(offset):
                    offset = entry.offset + 1
                    yield entry
                    is_there = self._segments[self._segments.floor(entry.offset)] is segment
                    if not is_there:
                        break  # it was compacted, or cut, between two of the entries
                if offset > before or not is_there:
                    continue  # the segment may have grown between two of the entries
                if segment is self._segments.active:
                    return
                offset = self._end_of(segment)

    def last_delivered(self, before: int = NOTHING_WAITS) -> DelayEntry | None:
        """The last delivered batch before an offset."""
        return self._last_of(DelayKind.DELIVERED, before)

    def last_relay(self) -> Relay | None:
        """How far dead letters have come, as the log says; None if it says nothing of it."""
        entry = self._last_of(DelayKind.RELAYED, NOTHING_WAITS)
        return None if entry is None else parse_relay(self.read(entry))

    def _last_of(self, kind: DelayKind, before: int) -> DelayEntry | None:
        with self._place.directory:
            for index in range(self._segments.floor(before), -1, -1):
                delays = self._segments[index].delays
                entry = None if delays is None else delays.last_of(kind, before)
                if entry is not None:
                    return entry
        return None

    def point(self) -> DeliveryPoint:
        """How far delivery has come, as the log says."""
        entry = self.last_delivered()
        return NOTHING_DELIVERED if entry is None else parse_point(self.read(entry))

    def read(self, entry: DelayEntry) -> memoryview:
        """The whole batch of an entry. DamagedFileError when it is not there."""
        batch = self.find(entry)
        if batch is None:
            raise DamagedFileError(f"{self._place.path}: no batch of offset {entry.offset}")
        return batch

    def find(self, entry: DelayEntry) -> memoryview | None:
        """The whole batch of an entry; None if compaction has taken it since."""
        with self._place.directory:
            segment = self._segments[self._segments.floor(entry.offset)]
            batch = _batch_at(segment, entry.position)
            if batch is None or parse_header(batch).base_offset != entry.offset:
                found = segment.locate(entry.offset)  # compaction has moved it
                batch = None if found is None else _batch_at(segment, found.position)
            if batch is None or parse_header(batch).base_offset != entry.offset:
                return None
            return batch if parse_header(batch).attributes & DELAY_BIT else None

    def first_to_read(self, offset: int) -> int:
        """The offset of the batch that holds `offset`, or of the first one after it."""
        with self._place.directory:
            found = self._segments.locate(max(offset, self._offsets.log_start_offset))
            return self._offsets.log_end_offset if found is None else found[1].base_offset

    def read_holding(self, offset: int) -> memoryview | None:
        """The whole batch that holds `offset`; None when the log does not, or not any more."""
        with self._place.directory:
            found = self._holding(offset)
            return None if found is None else _batch_at(*found)

    def waiting_at(self, offset: int) -> WaitingRecord | None:
        """What is said of a record that waits at `offset`, or did; None if there is none.

        It takes three short reads, however large the batch is.
        """
        with self._place.directory:
            found = self._holding(offset)
            if found is None:
                return None
            file, position = found[0].file, found[1]
            front = file.read_at(position, FRONT_BYTES)
            header = parse_header(front)
            if not header.attributes & DELAY_BIT or kind_of(header) is not DelayKind.WAITING:
                return None
            said = parse_front(front)
            index = offset - header.base_offset
            if said.type != WAITING or index >= said.records:
                return None
            at, size = said.number_at(index)
            number = parse_number(file.read_at(position + at, size))
            return WaitingRecord(header, said.received_ms, number)

    def needed_from(self) -> int:
        """The offset from which on retention has to keep the log.

        Exact where this broker leads and delivers; else by the last delivered batch, or the first
        that waits.
        """
        if self._offsets.waiting_from is not None:
            return self._offsets.waiting_from()
        if not self.exist:
            return NOTHING_WAITS
        for entry in self.entries_from(self.first_to_read(self.point().waiting_from)):
            if entry.kind is DelayKind.WAITING:
                return entry.offset
        return NOTHING_WAITS

    def _holding(self, offset: int) -> tuple[Segment, int] | None:
        """The segment and the position of the batch that holds `offset`."""
        if not self._offsets.log_start_offset <= offset < self._offsets.log_end_offset:
            return None
        found = self._segments.locate(offset)
        if found is None or found[1].base_offset > offset:
            return None
        return found[0], found[1].position

    def _segment_from(self, offset: int) -> Segment | None:
        """The first segment with entries that holds `offset` or lies after it."""
        for index in range(self._segments.floor(offset), len(self._segments)):
            segment = self._segments[index]
            if segment.delays is not None and self._end_of(segment) > offset:
                return segment
        return None

    def _end_of(self, segment: Segment) -> int:
        following = self._segments.floor(segment.base_offset) + 1
        bases = self._segments.base_offsets
        return bases[following] if following < len(bases) else self._offsets.log_end_offset


def _batch_at(segment: Segment, position: int) -> memoryview | None:
    head = segment.file.read_at(position, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return None
    size = parse_header(head).size_in_bytes
    if not HEADER_BYTES <= size <= segment.size - position:
        return None
    return memoryview(segment.file.read_at(position, size))
