"""Which records of a partition wait, and for when: what follows from its log, batch by batch.

A record is due when it says, but not before what has been delivered at that point of the log. Then
deliveries are in the order of (due, offset), and what has been delivered is all up to one such pair
(`protocol.delays.delivered_batch`), whatever the clocks of the brokers say:

    offset  batch                          due          waits afterwards
    10      waiting, deliver-at 500        500          (500, 10)
    11      waiting, deliver-at 400        400          (400, 11) (500, 10)
    12      delivered up to (400, 11)                   (500, 10)
    13      waiting, deliver-at 300        400          (400, 13) (500, 10)

In a transaction the delay begins with the marker that commits it, and a record is due at least a
millisecond after what was delivered then, since its offset may be lower.

Every leader reads the same log and comes to the same conclusions; no clock and no chance is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.delivery.waiting_queue import Waiting
from protocol.delays.delay_headers import AT_ONCE
from protocol.delays.relay_batch import Position
from protocol.delays.retry_headers import DEAD
from protocol.delays.waiting_batch import CANCELLED, is_cancellation, parse_waiting
from protocol.records.batch import DELAY_BIT, parse_header
from protocol.records.control import ControlType, parse_marker
from storage.delays.delay_index import DelayKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.delivery.relay_plan import RelayPlan
    from broker.delivery.waiting_queue import WaitingQueue
    from storage.delays.delay_index import DelayEntry
    from storage.delays.log_delays import LogDelays

PUSHED_AT_ONCE = 1_000
"""Records between two steps of `follow`."""


class _Undecided(NamedTuple):
    """A waiting batch of an open transaction."""

    base_offset: int
    times: tuple[int, ...]


class WaitingRecords:
    """What waits, as far as the log was followed."""

    def __init__(
        self, queue: WaitingQueue, dead: RelayPlan, delivered: Waiting, reached_ms: int
    ) -> None:
        """`delivered` is how far delivery has come by the end of the log.

        `reached_ms` is how far it had come before the batch that is followed first.
        """
        self.queue = queue
        self.dead = dead
        self.delivered = delivered
        self._reached_ms = reached_ms
        self._undecided: dict[int, list[_Undecided]] = {}
        """By producer id."""
        self.cancelled: set[int] = set()
        """Offsets of records that are not to be delivered; those that are passed are forgotten."""

    def follow(self, entry: DelayEntry, read: Callable[[DelayEntry], memoryview]) -> Iterator[None]:
        """Take in the next batch, in steps; `read` returns what is at an entry."""
        if entry.kind is DelayKind.DELIVERED:
            self._reached_ms = max(self._reached_ms, entry.timestamp)
            return
        if entry.kind is DelayKind.RELAYED:
            return
        batch = read(entry)
        header = parse_header(batch)
        if entry.kind is DelayKind.ENDED:
            yield from self._end(header.producer_id, batch, entry)
            return
        waiting = parse_waiting(batch)
        if waiting.type == CANCELLED:
            self.cancelled.update(waiting.numbers)
        elif header.is_transactional:
            undecided = _Undecided(entry.offset, waiting.numbers)
            self._undecided.setdefault(header.producer_id, []).append(undecided)
        else:
            undecided = _Undecided(entry.offset, waiting.numbers)
            yield from self._push(undecided, waiting.received_ms, None)

    def needed_from(self, end_offset: int) -> int:
        """Nothing before this offset waits; `end_offset` is up to where the log was followed."""
        least = self.queue.least_offset()
        firsts = [end_offset if least is None else least]
        firsts += [batches[0].base_offset for batches in self._undecided.values()]
        if self.dead.least_offset is not None:
            firsts.append(self.dead.least_offset)
        return min(firsts)

    def forget_passed(self, needed_from: int) -> None:
        """Let go of cancellations of what does not wait any more."""
        self.cancelled = {offset for offset in self.cancelled if offset >= needed_from}

    def waits(self, offset: int, delays: LogDelays) -> bool:
        """Whether a record waits at an offset, or would if it were not cancelled.

        Of a transaction that is committed none is known to wait.
        """
        if offset in self.cancelled:
            return True
        batch = delays.read_holding(offset)
        header = None if batch is None else parse_header(batch)
        if batch is None or header is None or not header.attributes & DELAY_BIT:
            return False
        if kind_of(header) is not DelayKind.WAITING or is_cancellation(batch):
            return False
        if header.is_transactional:
            undecided = self._undecided.get(header.producer_id, ())
            return any(one.base_offset == header.base_offset for one in undecided)
        waiting = parse_waiting(batch)
        before = delays.last_delivered(header.base_offset)
        time = waiting.numbers[offset - header.base_offset]
        if time == DEAD:
            return False
        due_ms = _due_ms(time, waiting.received_ms, -1 if before is None else before.timestamp)
        return Waiting(due_ms, offset) > self.delivered

    def _end(self, producer_id: int, batch: memoryview, entry: DelayEntry) -> Iterator[None]:
        marker = parse_marker(batch)
        undecided = self._undecided.pop(producer_id, ())
        if marker is None or marker.type is not ControlType.COMMIT:
            return
        for one in undecided:
            yield from self._push(one, entry.timestamp, entry.offset)

    def _push(self, decided: _Undecided, since_ms: int, committed_at: int | None) -> Iterator[None]:
        """Have records wait; `committed_at` is the offset of the end of their transaction."""
        queue, delivered = self.queue, self.delivered
        base_offset, times = decided
        reached_ms = self._reached_ms + (committed_at is not None)
        for index, time in enumerate(times):
            if time == DEAD:
                offset = base_offset + index
                at = offset if committed_at is None else committed_at
                self.dead.add(Position(at, offset))
                continue
            waiting = Waiting(_due_ms(time, since_ms, reached_ms), base_offset + index)
            if waiting > delivered:
                queue.push(waiting)
            if index % PUSHED_AT_ONCE == PUSHED_AT_ONCE - 1:
                yield


def _due_ms(time: int, since_ms: int, reached_ms: int) -> int:
    """When a record is due with this number (`protocol.delays.delay_headers`)."""
    stated = since_ms + AT_ONCE - time if time < 0 else max(time, since_ms)
    return max(stated, reached_ms)
