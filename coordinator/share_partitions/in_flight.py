"""The records that a share group has in flight in one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.share_partitions.acknowledgement import Acknowledgement, released
from coordinator.share_partitions.acquisition import Acquisition
from coordinator.share_partitions.record_range import (
    DEPARTED,
    NOBODY,
    STORED,
    RecordRange,
    RecordState,
    Transition,
)
from coordinator.share_partitions.record_ranges import RecordRanges
from coordinator.share_state.state import StateBatch, StoredState

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
    from coordinator.share_partitions.acquisition import Acquired, FetchedBatch, Wanted
    from coordinator.share_partitions.settings import ShareGroupSettings

NEVER_MS: Final = 1 << 62
MOST_RELEASED: Final = 1000
"""Ranges released at once when locks expire or members leave. Fixed: it takes two milliseconds."""


class Loaded(NamedTuple):
    """Records in flight as they were stored, and corrections to store."""

    records: InFlightRecords
    corrections: tuple[StateBatch, ...]
    """For records that were truncated from the log."""


class InFlightRecords:
    """States of the records from the start offset on. Times are monotonic milliseconds."""

    __slots__ = ("_may_be_available", "earliest_lock_ms", "ranges", "settings")

    def __init__(self, ranges: RecordRanges, settings: ShareGroupSettings) -> None:
        self.ranges = ranges
        self.settings = settings
        """As they are now: replace them before each step."""
        self.earliest_lock_ms = NEVER_MS
        """No lock expires before this."""
        self._may_be_available = len(ranges) > 0

    @property
    def next_fetch_offset(self) -> int:
        """Offset at which to read the log: that of the first available record, or the end."""
        if self._may_be_available:
            for one in self.ranges:
                if one.is_available:
                    return one.first
            self._may_be_available = False
        return self.ranges.end

    @property
    def can_acquire(self) -> bool:
        """True if a member could acquire anything, if the log has it."""
        ranges = self.ranges
        is_room = ranges.record_count < self.settings.max_record_locks
        return is_room or self.next_fetch_offset != ranges.end

    def acquire(
        self, wanted: Wanted, batches: Sequence[FetchedBatch], now_ms: int
    ) -> list[Acquired]:
        """Let a member acquire of the batches, which were read at `next_fetch_offset`."""
        if not batches:
            return []
        until_ms = now_ms + self.settings.record_lock_duration_ms
        acquired = Acquisition(self.ranges, self.settings, wanted, batches, until_ms).run()
        if acquired:
            self.earliest_lock_ms = min(self.earliest_lock_ms, until_ms)
        if wanted.keeps_to_limit:
            self._may_be_available = True  # the rest of the last batch
        self._tidy()
        return acquired

    def archive(self, acquired: list[Acquired], aborted: Iterable[FetchedBatch]) -> list[Acquired]:
        """Archive just acquired records of aborted transactions; returns the rest."""
        for batch in aborted:
            for one in self.ranges.isolated(batch.first, batch.last):
                if one.state is RecordState.ACQUIRED and one.transition is None:
                    self.ranges.change(one, RecordState.ARCHIVED)
                    one.member_id = NOBODY
            acquired = list(_without(acquired, batch))
        self._tidy()
        return acquired

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], now_ms: int
    ) -> Generator[None, None, Transition]:
        """Apply a member's acknowledgements; `commit` or `roll_back` the returned transition.

        In steps, between which others may be served: no member can acquire the records meanwhile.
        Raises ApiError, and changes nothing but locks, if the member does not hold all of them.
        """
        step = Acknowledgement(self.ranges, self.settings, member_id, now_ms)
        try:
            yield from step.apply(batches)
        except BaseException:
            self.roll_back(step.transition, now_ms)
            raise
        return step.transition

    def leave(self, member_id: str) -> None:
        """Let a member leave: `release_departed` will release the records it holds."""
        for one in self.ranges:
            if one.member_id == member_id and one.transition is None:
                one.member_id = DEPARTED

    def release_departed(self, now_ms: int, most: int = MOST_RELEASED) -> Transition:
        """Release the records of departed members; `commit` or `roll_back` the returned transition.

        No more than `most` ranges at once: call it again if there were as many.
        """
        step = Acknowledgement(self.ranges, self.settings, DEPARTED, now_ms)
        step.release(most)
        return step.transition

    def changes_of(self, transition: Transition) -> list[StateBatch]:
        """Return the changes of a transition to store."""
        return self._stored(transition.ranges)

    def commit(self, transition: Transition) -> None:
        """The step is stored."""
        for one in transition.ranges:
            one.transition = None
            one.lock_until_ms = 0
        self._may_be_available = True
        self._tidy()

    def roll_back(self, transition: Transition, now_ms: int) -> None:
        """The step cannot be stored: its records are as before, but locks may have expired."""
        for one in transition.ranges:
            if one.last < self.ranges.start:
                continue  # dropped meanwhile
            if one.lock_until_ms > now_ms:
                self.ranges.take_back(one, RecordState.ACQUIRED)
                one.member_id = transition.member_id
                self.earliest_lock_ms = min(self.earliest_lock_ms, one.lock_until_ms)
            else:
                self.ranges.take_back(one, released(one, self.settings))
                self._may_be_available = True
        self._tidy()

    def expire_locks(self, now_ms: int, most: int = MOST_RELEASED) -> list[StateBatch]:
        """Release records whose lock has expired; returns the changes to store.

        No more than `most` ranges at once: `earliest_lock_ms` has passed then.
        """
        earliest_ms = NEVER_MS
        expired: list[RecordRange] = []
        for one in self.ranges:
            if one.state is not RecordState.ACQUIRED or one.transition is not None:
                continue
            if one.lock_until_ms > now_ms or len(expired) >= most:
                earliest_ms = min(earliest_ms, one.lock_until_ms)
                continue
            self.ranges.change(one, released(one, self.settings))
            one.member_id = NOBODY
            one.lock_until_ms = 0
            expired.append(one)
        self.earliest_lock_ms = earliest_ms
        changes = self._stored(expired)
        if expired:
            self._may_be_available = True
            self._tidy()
        return changes

    def log_starts_at(self, offset: int) -> bool:
        """Records before `offset` left the log; returns whether any were in flight."""
        if offset <= self.ranges.start:
            return False
        self.ranges.drop_before(offset)
        self._tidy()
        return True

    def _tidy(self) -> None:
        self.ranges.advance()
        self.ranges.join()

    def _stored(self, ranges: list[RecordRange]) -> list[StateBatch]:
        """The ranges as they are stored, in order, those of one state together."""
        batches: list[StateBatch] = []
        for one in sorted(ranges, key=lambda each: each.first):
            if one.last < self.ranges.start:
                continue
            state, count = STORED[one.state], one.delivery_count
            before = batches[-1] if batches else None
            if before is not None and before[1:] == (one.first - 1, state, count):
                batches[-1] = before._replace(last_offset=one.last)
            else:
                batches.append(StateBatch(one.first, one.last, state, count))
        return batches


def load(
    stored: StoredState, start: int, log_end_offset: int, settings: ShareGroupSettings
) -> Loaded:
    """Records in flight as they were stored, from `start` on.

    What lies between stored batches was in delivery, or never fetched: it is available. What was
    stored of records at or behind the log's end speaks of others than those that will come to stand
    there, as an unclean election has cut the log. These must not pass for acknowledged, so they are
    available too; with one delivery more, since of two states of a record the coordinator keeps the
    one with more deliveries.
    """
    ranges = RecordRanges(min(start, log_end_offset))
    corrections: list[StateBatch] = []
    for batch in stored.batches:
        first = max(batch.first_offset, ranges.end)
        if batch.last_offset < first:
            continue
        if first > ranges.end:
            ranges.append(RecordRange(ranges.end, first - 1, RecordState.AVAILABLE, 0))
        kept_last = min(batch.last_offset, log_end_offset - 1)
        if first <= kept_last:
            ranges.append(_restored(batch, first, kept_last))
            first = kept_last + 1
        if first <= batch.last_offset:
            count = batch.delivery_count + 1
            ranges.append(RecordRange(first, batch.last_offset, RecordState.AVAILABLE, count))
            corrections.append(
                StateBatch(first, batch.last_offset, STORED[RecordState.AVAILABLE], count)
            )
    ranges.advance()
    return Loaded(InFlightRecords(ranges, settings), tuple(corrections))


def _restored(batch: StateBatch, first: int, last: int) -> RecordRange:
    state = batch.delivery_state
    known = RecordState(state) if state in set(STORED.values()) else RecordState.ARCHIVED
    return RecordRange(first, last, known, batch.delivery_count)


def _without(acquired: Iterable[Acquired], batch: FetchedBatch) -> Iterable[Acquired]:
    """Yield the acquired ranges, less the offsets of a batch."""
    for one in acquired:
        if one.last < batch.first or one.first > batch.last:
            yield one
            continue
        if one.first < batch.first:
            yield one._replace(last=batch.first - 1)
        if one.last > batch.last:
            yield one._replace(first=batch.last + 1)
