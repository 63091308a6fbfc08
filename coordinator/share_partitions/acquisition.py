"""Acquisition of fetched records by a member.

Records that were released, or whose lock expired, come first, then new ones behind the end. A
fetch begins where the first available record is, so it sees all of them in turn.

Their number is at most `max_records`, and the records in flight at most the group's limit of locks.
Batches are not split for that (so that clients need not decompress one twice) unless the member
keeps to its limit. When the locks are used up, records that are available again can still be
acquired, but no new ones.

A record that makes its consumers fail takes those with it that were delivered along. So from half
of the deliveries on, records that were fetched together are delivered in smaller and smaller
pieces, and each record alone for the last time. Worked example, limit 6, 500 records fetched at
once that fail together: the deliveries are of 500, 500, 500, 250, 125 records, then of one each.

Source: `SharePartition.acquire` in Apache Kafka 4.3.1.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.share_partitions.record_range import RecordRange, RecordState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.share_partitions.record_ranges import RecordRanges
    from coordinator.share_partitions.settings import ShareGroupSettings

FEWEST_BEFORE_ISOLATION: Final = 2
"""Deliveries that never make records come in fewer pieces."""

_batch_of = attrgetter("batch_first")


class FetchedBatch(NamedTuple):
    """Offsets of a batch that was read from the log."""

    first: int
    last: int


class Wanted(NamedTuple):
    """Request of a member for records."""

    member_id: str
    fetch_offset: int
    """Offset at which the log was read."""
    max_records: int
    batch_size: int
    """Records to put into one range of the answer, as far as batches allow."""
    keeps_to_limit: bool = False
    """True if batches are split rather than exceed `max_records`."""


class Acquired(NamedTuple):
    """Records that the member now has."""

    first: int
    last: int
    delivery_count: int


class Acquisition:
    """One member's turn. `batches` are those read from the log, at least one, in order."""

    def __init__(
        self,
        ranges: RecordRanges,
        settings: ShareGroupSettings,
        wanted: Wanted,
        batches: Sequence[FetchedBatch],
        lock_until_ms: int,
    ) -> None:
        self._ranges = ranges
        self._wanted = wanted
        self._batches = batches
        self._lock_until_ms = lock_until_ms
        self._limit = settings.delivery_count_limit
        self._isolated_from = max(FEWEST_BEFORE_ISOLATION, -(-self._limit // 2))
        self._last = batches[-1].last
        self._room = self._find_room(settings.max_record_locks)
        self._count = 0
        self._acquired: list[Acquired] = []

    def run(self) -> list[Acquired]:
        """Acquire records; returns the acquired ranges, in order."""
        if self._room > 0 and self._last >= self._ranges.start:
            self._archive_missing()
            is_alone = self._take_released()
            if not is_alone and self._count < self._room and self._last >= self._ranges.end:
                self._take_new()
        return self._acquired

    def _find_room(self, max_record_locks: int) -> int:
        ranges, wanted = self._ranges, self._wanted
        room = min(wanted.max_records, max_record_locks - ranges.record_count)
        if room <= 0 and wanted.fetch_offset < ranges.end:
            self._last = min(self._last, ranges.end - 1)
            room = min(wanted.max_records, ranges.end - wanted.fetch_offset)
        return room

    def _archive_missing(self) -> None:
        """Archive records missing from the log at the offset that was read: they were compacted."""
        ranges, first, found = self._ranges, self._wanted.fetch_offset, self._batches[0].first
        if first < found:
            for missing in ranges.isolated(first, found - 1):
                if missing.is_available:
                    ranges.change(missing, RecordState.ARCHIVED)

    def _take_released(self) -> bool:
        """Acquire released records; returns whether no others may be delivered along."""
        begin = max(self._batches[0].first, self._ranges.start)
        known = [one for one in self._ranges.overlapping(begin, self._last) if one.is_available]
        for _, pieces in groupby(known, _batch_of):
            if self._count >= self._room:
                break
            together = list(pieces)
            is_isolated = max(one.delivery_count for one in together) >= self._isolated_from
            if is_isolated and self._count:
                return True
            taken = self._take_batch(together, begin)
            self._count += taken
            if is_isolated and taken:
                return True
        return False

    def _take_batch(self, pieces: list[RecordRange], begin: int) -> int:
        """Acquire of records that were fetched together; returns how many."""
        taken = 0
        most: int | None = None
        size = pieces[0].batch_last - pieces[0].batch_first + 1
        for piece in pieces:
            first, whole = max(piece.first, begin), min(piece.last, self._last)
            last, count = whole, piece.delivery_count
            is_last_delivery = count == self._limit - 1 and self._limit > FEWEST_BEFORE_ISOLATION
            if is_last_delivery:
                if taken:
                    break
                last = first
            elif count >= self._isolated_from and most is None:
                most = max(1, size >> (count - self._isolated_from + 1))
            if most is not None:
                last = min(last, first + most - taken - 1)
            is_gap = count == 0 and piece.first == piece.batch_first
            last = min(last, self._limited(first, taken, is_gap=is_gap))
            if last < first:
                break
            if is_gap:
                self._divide(piece, last)
            self._take(first, last)
            taken += last - first + 1
            if is_last_delivery or last < whole:
                break
        return taken

    def _divide(self, gap: RecordRange, last: int) -> None:
        """Separate the acquired part of a gap from the rest, as batches of their own."""
        end = gap.last
        for one in (*self._ranges.isolated(gap.first, last), *self._ranges.isolated(last + 1, end)):
            one.batch_first, one.batch_last = one.first, one.last

    def _limited(self, first: int, taken: int, *, is_gap: bool) -> int:
        """The last offset that `max_records` allow from `first` on."""
        left = self._room - self._count - taken
        if self._wanted.keeps_to_limit:
            return first + left - 1
        if is_gap:
            return self._end_of_batch(first + left - 1) if left > 0 else first - 1
        return self._last

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the batch that holds `offset`, or that itself."""
        for batch in self._batches:
            if offset <= batch.last:
                return batch.last if offset >= batch.first else offset
        return offset

    def _take(self, first: int, last: int) -> None:
        for one in self._ranges.isolated(first, last):
            self._ranges.change(one, RecordState.ACQUIRED)
            self._lock(one)

    def _lock(self, one: RecordRange) -> None:
        one.delivery_count += 1
        one.member_id = self._wanted.member_id
        one.lock_until_ms = self._lock_until_ms
        self._note(one)

    def _note(self, one: RecordRange) -> None:
        before = self._acquired[-1] if self._acquired else None
        if (
            before is not None
            and before.last + 1 == one.first > one.batch_first
            and before.delivery_count == one.delivery_count
        ):
            self._acquired[-1] = before._replace(last=one.last)
        else:
            self._acquired.append(Acquired(one.first, one.last, one.delivery_count))

    def _take_new(self) -> None:
        """Acquire records behind the end."""
        ranges, found = self._ranges, self._batches[0].first
        if found > ranges.end:
            if ranges.record_count:
                ranges.append(RecordRange(ranges.end, found - 1, RecordState.ARCHIVED, 0))
            else:
                ranges.restart_at(found)
        first, last = ranges.end, self._last
        room = self._room - self._count
        limit = first + room - 1
        if last > limit:
            last = min(self._end_of_batch(limit), last)
        if self._wanted.keeps_to_limit:
            ranges.append(RecordRange(first, last, RecordState.AVAILABLE, 0))
            self._take(first, min(limit, last))
            return
        for begin, end in self._portions(first, last):
            one = RecordRange(begin, end, RecordState.ACQUIRED, 0)
            ranges.append(one)
            self._lock(one)

    def _portions(self, first: int, last: int) -> list[tuple[int, int]]:
        """Divide [first, last] at the beginnings of batches, into `batch_size` records or more."""
        size = max(1, self._wanted.batch_size)
        portions = []
        if last - first + 1 > size:
            for batch in self._batches:
                if batch.first > last:
                    break
                if batch.first - first >= size:
                    portions.append((first, batch.first - 1))
                    first = batch.first
        portions.append((first, last))
        return portions
