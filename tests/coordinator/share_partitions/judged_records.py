"""A log, a share coordinator's store, and a judge of what members are given of one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.share_partitions.acquisition import Acquired, FetchedBatch, Wanted
from coordinator.share_partitions.in_flight import InFlightRecords, load
from coordinator.share_partitions.record_range import (
    NOBODY,
    AcknowledgeType,
    RecordState,
    Transition,
)
from coordinator.share_state.state import StateBatch, StoredState
from tests.support.broker_parts.steps import finished

if TYPE_CHECKING:
    from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
    from coordinator.share_partitions.settings import ShareGroupSettings

FINAL = {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}


class Step(NamedTuple):
    """A member's transition, and the batches to store for it."""

    transition: Transition
    batches: list[StateBatch]


class JudgedRecords:
    """A share-partition under its leader, and its invariants."""

    def __init__(self, settings: ShareGroupSettings) -> None:
        self.settings = settings
        self.now_ms = 0
        self.log: list[FetchedBatch] = []
        self.log_start = 0
        self.log_end = 0
        self.aborted: set[FetchedBatch] = set()
        self.stored: dict[int, tuple[int, int]] = {}
        """Delivery count and state, by offset."""
        self.stored_start = 0
        self.finished: set[int] = set()
        """Offsets stored as finished: they must not be delivered again."""
        self.counts: dict[int, int] = {}
        """Deliveries of each record, as reported to members."""
        self.owners: dict[int, tuple[str, int]] = {}
        """Member that holds each record, and the end of its lock."""
        self.pending: list[Step] = []
        self.records = self._loaded()

    def append(self, count: int, hole: int, *, is_aborted: bool = False) -> None:
        """A batch behind `hole` offsets without records."""
        first = self.log_end + hole
        batch = FetchedBatch(first, first + count - 1)
        self.log.append(batch)
        self.log_end = batch.last + 1
        if is_aborted:
            self.aborted.add(batch)

    def compact(self, index: int) -> None:
        """A batch vanishes; not the last, which the log keeps."""
        if index < len(self.log) - 1:
            del self.log[index]

    def retain_from(self, offset: int) -> None:
        """The log begins later."""
        self.log_start = max(self.log_start, min(offset, self.log_end))
        self.log = [batch for batch in self.log if batch.last >= self.log_start]

    def acquire(
        self, member: str, max_records: int, batches: int, *, keeps_to_limit: bool = False
    ) -> list[Acquired]:
        """Read the log where the records say, and acquire; judged."""
        self.records.log_starts_at(self.log_start)
        if not self.records.can_acquire:
            return []
        offset = self.records.next_fetch_offset
        found = [batch for batch in self.log if batch.last >= offset][:batches]
        wanted = Wanted(member, offset, max_records, 5, keeps_to_limit)
        acquired = self.records.acquire(wanted, found, self.now_ms)
        if keeps_to_limit:
            assert sum(one.last - one.first + 1 for one in acquired) <= max_records
        for one in acquired:
            for each in range(one.first, one.last + 1):
                self._give(each, member, one.delivery_count)
        if self.settings.is_read_committed:
            aborted = sorted(self.aborted.intersection(found))
            acquired = self.records.archive(acquired, aborted)
            for batch in aborted:
                self._take(batch.first, batch.last)
        self.check()
        return acquired

    def _give(self, offset: int, member: str, delivery_count: int) -> None:
        assert offset not in self.finished, f"{offset} comes again"
        assert offset not in self.owners, f"{offset} is another's"
        assert delivery_count == self.counts.get(offset, 0) + 1, f"{offset} was counted before"
        assert delivery_count <= self.settings.delivery_count_limit
        self.counts[offset] = delivery_count
        self.owners[offset] = member, self.now_ms + self.settings.record_lock_duration_ms

    def acknowledge(self, member: str, batch: AcknowledgementBatch) -> None:
        """Raises ApiError if the records refuse; they have to if the member does not hold them."""
        start, end = self.records.ranges.start, self.records.ranges.end
        try:
            transition = finished(self.records.acknowledge(member, [batch], self.now_ms))
        finally:
            self._note_renewals(member, batch)
        assert batch.last < end
        for each in range(max(batch.first, start), batch.last + 1):
            if each in self.counts:
                assert self.owners[each][0] == member, f"{each} is another's"
        self.note(transition)

    def _note_renewals(self, member: str, batch: AcknowledgementBatch) -> None:
        """Renewals before a refused type hold all the same."""
        until_ms = self.now_ms + self.settings.record_lock_duration_ms
        for one in self.records.ranges.overlapping(batch.first, batch.last):
            for each in range(max(one.first, batch.first), min(one.last, batch.last) + 1):
                kind = batch.types[each - batch.first if len(batch.types) > 1 else 0]
                is_renewed = one.lock_until_ms == until_ms and one.member_id == member
                if kind == AcknowledgeType.RENEW and is_renewed:
                    self.owners[each] = member, until_ms

    def store(self) -> None:
        """Store the oldest pending step."""
        step = self.pending.pop(0)
        self._write(step.batches)
        self.records.commit(step.transition)
        for one in step.transition.ranges:
            self._take(one.first, one.last)
        self.check()

    def refuse(self) -> None:
        """Fail to store the oldest pending step."""
        step = self.pending.pop(0)
        self.records.roll_back(step.transition, self.now_ms)
        self._expire()
        self.check()

    def note(self, transition: Transition) -> None:
        """A member did something with records."""
        if transition.ranges:
            self.pending.append(Step(transition, self.records.changes_of(transition)))
        self.check()

    def pass_time(self, ms: int) -> None:
        """Locks may expire."""
        self.now_ms += ms
        if self.records.earliest_lock_ms <= self.now_ms:
            self._write(self.records.expire_locks(self.now_ms))
        self._expire()
        self.check()

    def _expire(self) -> None:
        waiting = {
            offset
            for step in self.pending
            for one in step.transition.ranges
            for offset in range(one.first, one.last + 1)
        }
        for offset, (_, until_ms) in list(self.owners.items()):
            if until_ms <= self.now_ms and offset not in waiting:
                del self.owners[offset]

    def _take(self, first: int, last: int) -> None:
        for offset in range(first, last + 1):
            self.owners.pop(offset, None)

    def restart(self) -> None:
        """Elect another leader: unstored state is lost."""
        self.pending.clear()
        self.owners.clear()
        self.records = self._loaded()
        for offset in list(self.counts):
            self.counts[offset] = self.stored.get(offset, (0, 0))[0]
        self.check()

    def unfinished(self) -> list[int]:
        """Return the visible records of the log that are not finished."""
        hidden = self.aborted if self.settings.is_read_committed else set()
        return [
            offset
            for batch in self.log
            if batch not in hidden
            for offset in range(max(batch.first, self.log_start), batch.last + 1)
            if offset not in self.finished
        ]

    def _write(self, batches: list[StateBatch]) -> None:
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                new = (batch.delivery_count, batch.delivery_state)
                self.stored[offset] = max(new, self.stored.get(offset, new))
                if RecordState(self.stored[offset][1]) in FINAL:
                    self.finished.add(offset)
        self.stored_start = self.records.ranges.start

    def _loaded(self) -> InFlightRecords:
        batches: list[StateBatch] = []
        for offset, (count, state) in sorted(self.stored.items()):
            if offset >= self.stored_start:
                batches.append(StateBatch(offset, offset, state, count))
        state_read = StoredState(0, self.stored_start, tuple(batches))
        return load(state_read, self.stored_start, self.log_end, self.settings).records

    def check(self) -> None:
        """The ranges are whole."""
        ranges = self.records.ranges
        position = ranges.start
        final = 0
        for one in ranges:
            assert one.first == position
            position = one.last + 1
            final += len(one) if one.state.is_final else 0
            assert (one.member_id != NOBODY) == (one.state is RecordState.ACQUIRED)
            for offset in range(one.first, one.last + 1):
                is_held = one.state is RecordState.ACQUIRED or one.transition is not None
                assert is_held == (offset in self.owners), f"{offset}: {one}"
            if one.state is RecordState.ACQUIRED:
                assert one.transition is None
                assert self.records.earliest_lock_ms <= one.lock_until_ms
            if one.transition is not None:
                assert one in one.transition.ranges
        assert position == ranges.end
        assert final == ranges.final_count
        assert not any(one.is_finished for one in list(ranges)[:1])
        assert self.records.next_fetch_offset == next(
            (one.first for one in ranges if one.is_available), ranges.end
        )
