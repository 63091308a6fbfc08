"""Waiting records of a partition and their due times, derived from its log, batch by batch.

A record is due at its stated time, but not before the records already delivered at that point of
the log. Then deliveries are in the order of (due, offset), and the delivered records are all those
up to one such pair (`protocol.delays.delivered_batch`), whatever the clocks of the brokers:

    offset  batch                          due          waits afterwards
    10      waiting, deliver-at 500        500          (500, 10)
    11      waiting, deliver-at 400        400          (400, 11) (500, 10)
    12      delivered up to (400, 11)                   (500, 10)
    13      waiting, deliver-at 300        400          (400, 13) (500, 10)

In a transaction the delay begins with the marker that commits it, and a record is due at least a
millisecond after the last delivery before that, since its offset may be lower. The same holds for
cancellations: records delivered by then stay delivered.

Every leader reads the same log and comes to the same result, without a clock or chance. A clock
serves one purpose: whether the stated time of the next record has come. Then that one is due,
unless the clock was set back to before the last delivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.delivery.open_transactions import DecidedBatch, OpenTransactions
from broker.delivery.waiting_queue import Waiting
from protocol.delays.delay_headers import AT_ONCE
from protocol.delays.relay_batch import Position
from protocol.delays.retry_headers import DEAD
from protocol.delays.waiting_batch import CANCELLED, parse_waiting
from protocol.records.batch import parse_header
from protocol.records.control import ControlType, parse_marker
from storage.delays.delay_index import DelayKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.delivery.relay_plan import RelayPlan
    from broker.delivery.waiting_queue import WaitingQueue
    from storage.delays.delay_index import DelayEntry
    from storage.delays.log_delays import LogDelays, WaitingRecord

PUSHED_AT_ONCE = 1_000
"""Records between two steps of `follow`."""
LATEST_MS: Final = (1 << 63) - 1
"""No later time can be written. Producers are held to less; a log of before may state more."""


class WaitingRecords:
    """Waiting records, as far as the log was followed."""

    def __init__(
        self,
        queue: WaitingQueue[Waiting],
        dead: RelayPlan,
        open_transactions: OpenTransactions,
        delivered: Waiting,
        before: DelayEntry | None,
    ) -> None:
        """`delivered` is how far delivery has come by the end of the log.

        `before` is the last delivered batch before the one that is followed first.
        """
        self.queue = queue
        self.dead = dead
        self.delivered = delivered
        self.open = open_transactions
        self._reached_ms = -1 if before is None else before.timestamp
        self.reached_at = -1 if before is None else before.offset
        """Offset of the delivered batch with which delivery reached that time; -1 without one."""
        self._forgotten_to = -1
        self.cancelled: set[int] = set()
        """Offsets of records that are not to be delivered, until their time has come."""
        self._passed: list[tuple[Waiting, int]] = []
        """Points beyond `delivered` up to which no record before an offset waits any more.

        One, unless the clock was set back: further ones are earlier, and later in the log.
        """

    def follow(self, entry: DelayEntry, delays: LogDelays) -> Iterator[None]:
        """Take in the next batch, in steps."""
        if entry.kind in {DelayKind.DELIVERED, DelayKind.RELAYED}:
            delays.check(entry)
            if entry.kind is DelayKind.DELIVERED:
                self._reach(entry.timestamp, entry.offset)
            return
        batch = delays.read(entry)
        header = parse_header(batch)
        if entry.kind is DelayKind.ENDED:
            yield from self._end(header.producer_id, batch, entry, delays)
            return
        waiting = parse_waiting(batch)
        one = DecidedBatch(entry.offset, waiting.numbers, waiting.type == CANCELLED)
        if header.is_transactional:
            self.open.add(header.producer_id, one)
        elif one.is_cancellation:
            yield from self._cancel(one.numbers, delays)
        else:
            yield from self._push(one, waiting.received_ms, None)

    def deliver(self, last: Waiting, at: int) -> None:
        """All up to `last` is delivered, with a batch of offset `at`."""
        self.delivered = last
        self._reach(last.due_ms, at)
        self._passed = [one for one in self._passed if one[0] > last]

    def pass_by(self, end_offset: int) -> None:
        """Remove the next record from the queue, as it is gone; the log ends at `end_offset`."""
        gone = up_to(self.queue.pop())
        self.cancelled.discard(gone.offset)
        self._passed = [one for one in self._passed if one[0] > gone]
        self._passed.append((gone, end_offset))

    def needed_from(self, end_offset: int) -> int:
        """Lowest offset that may wait; the log was followed up to `end_offset`."""
        least = self.queue.least_offset()
        firsts = [end_offset if least is None else least]
        if self.open.first_offset is not None:
            firsts.append(self.open.first_offset)
        if self.dead.least_offset is not None:
            firsts.append(self.dead.least_offset)
        return min(firsts)

    def forget_passed(self, needed_from: int) -> None:
        """Forget cancellations of records that no longer wait; cheap if there are none."""
        if needed_from <= self._forgotten_to:
            return
        self._forgotten_to = needed_from
        self.cancelled = {offset for offset in self.cancelled if offset >= needed_from}

    def waits(self, offset: int, delays: LogDelays) -> bool:
        """Return whether a record waits at an offset, or would if it were not cancelled.

        False for all records of a committed transaction, which are not known.
        """
        found = delays.waiting_at(offset)
        if found is None or found.number == DEAD:
            return False
        header = found.header
        if header.is_transactional:
            return self.open.holds(header.producer_id, header.base_offset)
        return self._is_to_come(found, offset)

    def _is_to_come(self, found: WaitingRecord, offset: int) -> bool:
        """Return whether a record outside transactions comes after the delivered ones."""
        header, since_ms, time = found
        # It is due later if it came after delivery had reached a later time; but of that only one
        # time matters, since before it all is delivered, and behind it nothing.
        reached_ms = self._reached_ms if header.base_offset > self.reached_at else -1
        waiting = Waiting(max(_stated_ms(time, since_ms), reached_ms), offset)
        return waiting > self.delivered and not any(
            waiting <= passed and offset < end_offset for passed, end_offset in self._passed
        )

    def _reach(self, due_ms: int, at: int) -> None:
        if due_ms > self._reached_ms:
            self._reached_ms, self.reached_at = due_ms, at

    def _end(
        self, producer_id: int, batch: memoryview, entry: DelayEntry, delays: LogDelays
    ) -> Iterator[None]:
        marker = parse_marker(batch)
        if marker is None or marker.type is not ControlType.COMMIT:
            for first, end in self.open.abort(producer_id):
                self.cancelled.difference_update(range(first, end))
            return
        for one in self.open.commit(producer_id, entry.offset, delays):
            if one is not None:
                if one.is_cancellation:
                    yield from self._cancel(one.numbers, delays)
                else:
                    yield from self._push(one, entry.timestamp, entry.offset)
            yield

    def _cancel(self, offsets: Sequence[int], delays: LogDelays) -> Iterator[None]:
        """Cancel the records that still wait.

        Some may not, if a transaction commits, or the log is loaded.
        """
        for offset in offsets:
            found = delays.waiting_at(offset)
            if (
                found is not None
                and found.number != DEAD
                and (found.header.is_transactional or self._is_to_come(found, offset))
            ):
                self.cancelled.add(offset)
            yield

    def _push(
        self, decided: DecidedBatch, since_ms: int, committed_at: int | None
    ) -> Iterator[None]:
        """Have records wait; `committed_at` is the offset of the end of their transaction."""
        queue, push, delivered = self.queue, self.queue.push, self.delivered
        base_offset, times, _ = decided
        reached_ms = self._reached_ms + (committed_at is not None)
        for index, time in enumerate(times):
            if time == DEAD:
                offset = base_offset + index
                at = offset if committed_at is None else committed_at
                self.dead.add(Position(at, offset))
                if self.dead.is_full:
                    yield from self.dead.spill()
                continue
            stated_ms = _stated_ms(time, since_ms)
            due_ms = min(max(stated_ms, reached_ms), LATEST_MS)
            waiting = Waiting(due_ms, base_offset + index, stated_ms)
            if waiting <= delivered:
                self.cancelled.discard(waiting.offset)
            elif push(waiting):
                yield from queue.spill()
            if index % PUSHED_AT_ONCE == PUSHED_AT_ONCE - 1:
                yield


def up_to(waiting: Waiting) -> Waiting:
    """The point up to which, inclusive, no record waits any more."""
    return Waiting(waiting.due_ms, waiting.offset, waiting.due_ms)


def _stated_ms(time: int, since_ms: int) -> int:
    """Delivery time of a record with this delay number (`protocol.delays.delay_headers`)."""
    stated_ms = since_ms + AT_ONCE - time if time < 0 else max(time, since_ms)
    return min(stated_ms, LATEST_MS)
