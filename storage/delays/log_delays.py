"""The part of a log that concerns delays: waiting batches, delivered ones, ends of transactions.

A log without any, as nearly all are, has no file for them; the cost is one field per segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.delivered_batch import NOTHING_DELIVERED, DeliveryPoint, parse_point
from protocol.delays.relay_batch import Relay, parse_relay
from protocol.delays.waiting_batch import FRONT_BYTES, WAITING, parse_front, parse_number
from protocol.records.batch import (
    DELAY_BIT,
    HEADER_BYTES,
    BatchHeader,
    compute_crc,
    parse_header,
)
from storage.delays.delay_index import DelayEntry, DelayKind, kind_of
from storage.delays.delay_rebuild import DelayRebuild
from storage.errors import DamagedDelaysError, DamagedFileError
from storage.segment.file_names import DELAY_INDEX, segment_file

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
    """Delivery time (`protocol.delays.delay_headers`)."""


class LogDelays:
    """Look-ups in one log. Made when needed; every method may raise LogDirectoryError."""

    __slots__ = ("_contents", "_offsets", "_place", "_segments")

    def __init__(self, contents: LogContents) -> None:
        self._contents = contents
        self._place = contents.files.place
        self._segments = contents.files.segments
        self._offsets = contents.offsets

    @property
    def exist(self) -> bool:
        """True if the log has a batch that concerns delays, or may have."""
        return any(one.delays is not None and one.delays.may_hold for one in self._segments)

    def entries_from(self, offset: int) -> Iterator[DelayEntry]:
        """Entries of batches at or after `offset`, in order, some at a time.

        The log may grow or lose its oldest segments meanwhile: iteration ends when no further entry
        is found. An entry is reliable once `read` or `check` has compared it with its batch.
        """
        with self._place.directory:
            while (segment := self._segment_from(offset)) is not None:
                assert segment.delays is not None
                before = offset
                is_there = True
                for entry in segment.delays.entries_from(offset, segment.has_batch):
                    self._check_place(segment, entry)
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
        """The last delivered batch before an offset, if the log still holds it."""
        entry = self._last_of(DelayKind.DELIVERED, before)
        if entry is None or entry.offset < self._offsets.log_start_offset:
            return None
        self.check(entry)
        return entry

    def last_relay(self) -> Relay | None:
        """Progress of dead letters according to the log; None if it records none."""
        entry = self._last_of(DelayKind.RELAYED, NOTHING_WAITS)
        return None if entry is None else parse_relay(self.read(entry))

    def _last_of(self, kind: DelayKind, before: int) -> DelayEntry | None:
        with self._place.directory:
            for index in range(self._segments.floor(before), -1, -1):
                segment = self._segments[index]
                entry = None if segment.delays is None else segment.delays.last_of(kind, before)
                if entry is not None:
                    self._check_place(segment, entry)
                    return entry
        return None

    def point(self, before: int = NOTHING_WAITS) -> DeliveryPoint:
        """Progress of delivery before an offset, according to the log."""
        entry = self.last_delivered(before)
        return NOTHING_DELIVERED if entry is None else parse_point(self.read(entry))

    def read(self, entry: DelayEntry) -> memoryview:
        """The whole batch of an entry. Raises DamagedDelaysError if there is no such batch."""
        with self._place.directory:
            found = self._find(entry)
            self._check(entry, None if found is None else found[2])
            assert found is not None
            batch = _batch_at(found[0], found[1])
            if batch is None:
                raise DamagedFileError(f"{found[0].path}: the batch at byte {found[1]} is cut off")
            return batch

    def check(self, entry: DelayEntry) -> None:
        """Hold an entry against the header of its batch; raises DamagedDelaysError."""
        with self._place.directory:
            found = self._find(entry)
            self._check(entry, None if found is None else found[2])

    def find(self, entry: DelayEntry) -> memoryview | None:
        """The whole batch of an entry; None if compaction has taken it since."""
        with self._place.directory:
            found = self._find(entry)
            return None if found is None else _batch_at(found[0], found[1])

    def rebuild(self, base_offset: int) -> DelayRebuild:
        """Rebuild the delay index of a segment, after a DamagedDelaysError."""
        return DelayRebuild(self._contents, base_offset)

    def first_to_read(self, offset: int) -> int:
        """The offset of the batch that holds `offset`, or of the first one after it."""
        with self._place.directory:
            found = self._segments.locate(max(offset, self._offsets.log_start_offset))
            return self._offsets.log_end_offset if found is None else found[1].base_offset

    def read_holding(self, offset: int) -> memoryview | None:
        """The whole batch that holds `offset`; None if the log does not have it."""
        with self._place.directory:
            found = self._holding(offset)
            return None if found is None else _batch_at(*found)

    def waiting_at(self, offset: int) -> WaitingRecord | None:
        """Delay of the record at `offset` that waits, or did; None if there is none.

        Costs three short reads, whatever the size of the batch.
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
        """Lowest offset that retention has to keep.

        Exact on the broker that leads and delivers, else as recorded in the log.
        """
        tell = self._offsets.waiting_from
        return self.needed_as_told_by_log() if tell is None else tell()

    def needed_as_told_by_log(self) -> int:
        """The same by the last delivered batch, or the first that waits.

        A delivery counts once it is committed: until then it may be truncated, and its records wait
        again.
        """
        if not self.exist:
            return NOTHING_WAITS
        committed = self.point(self._offsets.high_watermark)
        for entry in self.entries_from(self.first_to_read(committed.waiting_from)):
            self.check(entry)
            if entry.kind is DelayKind.WAITING:
                return self.needed_for(entry.offset)
        return NOTHING_WAITS

    def needed_for(self, first: int) -> int:
        """Lowest offset needed if the first record that waits is at `first`.

        That includes the last batch delivered before it: a record is due no earlier than the
        records delivered before it was appended, whatever time it states.
        """
        before = self.last_delivered(first)
        return first if before is None else before.offset

    def _find(self, entry: DelayEntry) -> tuple[Segment, int, BatchHeader] | None:
        """Segment, position and header of the batch of an entry, wherever compaction has put it."""
        segment = self._segments[self._segments.floor(entry.offset)]
        position, header = entry.position, _header_at(segment, entry.position)
        if header is None or header.base_offset != entry.offset:
            found = segment.locate(entry.offset)
            if found is None or found.base_offset != entry.offset:
                return None
            position, header = found.position, _header_at(segment, found.position)
        if header is None or not header.attributes & DELAY_BIT:
            return None
        return segment, position, header

    def _check_place(self, segment: Segment, entry: DelayEntry) -> None:
        """Check that an entry lies within its segment, whose index is damaged otherwise."""
        if not segment.base_offset <= entry.offset < self._end_of(segment):
            path = segment_file(self._place.path, segment.base_offset, DELAY_INDEX)
            text = f"{path}: offset {entry.offset} does not lie in the segment"
            raise DamagedDelaysError(text, segment.base_offset)

    def _check(self, entry: DelayEntry, header: BatchHeader | None) -> None:
        if (
            header is not None
            and kind_of(header) is entry.kind
            and header.max_timestamp == entry.timestamp
        ):
            return
        segment = self._segments[self._segments.floor(entry.offset)]
        self._check_log(segment, entry)
        path = segment_file(self._place.path, segment.base_offset, DELAY_INDEX)
        said = f"offset {entry.offset} that is {entry.kind.name.lower()} with {entry.timestamp}"
        raise DamagedDelaysError(f"{path}: there is no batch of {said}", segment.base_offset)

    def _check_log(self, segment: Segment, entry: DelayEntry) -> None:
        """Raise DamagedFileError if the log itself is damaged, rather than its entry."""
        batch = _batch_at(segment, entry.position)
        if batch is None or parse_header(batch).base_offset != entry.offset:
            return
        if parse_header(batch).crc != compute_crc(batch, 0, len(batch)):
            raise DamagedFileError(f"{segment.path}: the batch of offset {entry.offset} is damaged")

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


def _header_at(segment: Segment, position: int) -> BatchHeader | None:
    head = segment.file.read_at(position, HEADER_BYTES) if position < segment.size else b""
    return parse_header(head) if len(head) == HEADER_BYTES else None


def _batch_at(segment: Segment, position: int) -> memoryview | None:
    header = _header_at(segment, position)
    if header is None:
        return None
    size = header.size_in_bytes
    if not HEADER_BYTES <= size <= segment.size - position:
        return None
    return memoryview(segment.file.read_at(position, size))
