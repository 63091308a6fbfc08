"""The log of one partition as followed by its leader: waiting records, up to the last append."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.delivery.open_transactions import OpenTransactions
from broker.delivery.relay_plan import RelayPlan
from broker.delivery.sources import Sources
from broker.delivery.waiting_queue import RunPlace, Waiting, WaitingQueue
from broker.delivery.waiting_records import WaitingRecords, up_to
from protocol.delays.relay_batch import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.delivery.delivery_parts import DeliveryLimits
    from broker.runtime.slices import Slices
    from storage.log.log import Log


class FollowedLog:
    """Made when this broker begins to lead; `follow` until it returns, then after each poke."""

    def __init__(self, log: Log, slices: Callable[[], Slices], limits: DeliveryLimits) -> None:
        """Read the delivery position, and the start of the waiting records."""
        self._log = log
        self._slices = slices
        self._most_cancelled = limits.cancelled_records
        point = log.delays.point()
        first = log.delays.first_to_read(point.waiting_from)
        filesystem, most = log.directory.disk.filesystem, limits.memory_records
        place = RunPlace(filesystem, log.path, "dead-letters")
        self.dead = RelayPlan(log.delays.last_relay(), WaitingQueue(place, Position._make, most))
        """Dead letters, if this is a retry topic."""
        self.queue = WaitingQueue(RunPlace(filesystem, log.path, "delivery"), Waiting._make, most)
        self._before = log.delays.last_delivered(first)
        self.records = WaitingRecords(
            self.queue,
            self.dead,
            OpenTransactions(most),
            up_to(Waiting(point.due_ms, point.offset)),
            self._before,
        )
        self.sources = Sources(log.delays.read_holding)
        self._cursor = self._first = first
        self.is_poked = True
        """Something that has to do with delays was appended and is not followed yet."""
        self.is_loaded = False
        """True if it was followed to the end once."""

    async def follow(self, is_over: Callable[[], bool]) -> None:
        """Read the new records, in slices. When this returns, there are no more.

        It ends early if `is_over`, when the log is another leader's.
        """
        delays, records = self._log.delays, self.records
        slices = self._slices()
        if not self.is_loaded:
            await self._check_before(slices)
        if is_over():
            return
        is_at_end = False
        while not is_at_end:
            is_at_end = True
            for entry in delays.entries_from(self._cursor):
                is_at_end = False
                await slices.give_way()
                for _ in records.follow(entry, delays):
                    await slices.give_way()
                    if is_over():
                        return
                if is_over():
                    return
                self._cursor = entry.offset + 1
        self.is_poked = False
        self.is_loaded = True

    @property
    def is_outdated(self) -> bool:
        """True if the log has lost the batch that sets the earliest due time of new records.

        Another leader would not have it, and would misinterpret records delivered by it.
        """
        return 0 <= self.records.reached_at < self._log.log_start_offset

    async def _check_before(self, slices: Slices) -> None:
        """See that no batch was delivered between what counts as the last one, and the first read.

        Of each batch from there on that one is held against the log when it is read.
        """
        start = 0 if self._before is None else self._before.offset
        for entry in self._log.delays.entries_from(start):
            if entry.offset >= self._first:
                return
            self._log.delays.check(entry)
            await slices.give_way()

    def needed_from(self) -> int:
        """Lowest offset that may wait."""
        if not self.is_loaded:
            return self._log.delays.point().waiting_from
        # Records not followed yet may wait. Without a poke, no appended record does.
        return self.records.needed_from(self._cursor if self.is_poked else self._log.log_end_offset)

    def waits(self, offset: int) -> bool:
        """See `WaitingRecords.waits`."""
        return self.records.waits(offset, self._log.delays)

    def pass_by(self) -> None:
        """Remove the next record from the queue, as it is gone."""
        self.records.pass_by(self._log.log_end_offset)

    def has_room_for(self, cancelled: Sequence[int]) -> bool:
        """Return whether the records at these offsets may be cancelled as well."""
        records = self.records
        added = sum(offset not in records.cancelled for offset in cancelled)
        most = self._most_cancelled - records.open.cancellations - added
        if len(records.cancelled) > most:
            records.forget_passed(self.needed_from())
        return len(records.cancelled) <= most

    def close(self) -> None:
        """Remove the files in which records wait: another follows the log."""
        self.queue.close()
        self.dead.close()

    def is_gone(self, offset: int) -> bool:
        """Return whether a record that waited is not to be delivered."""
        return offset in self.records.cancelled or offset < self._log.log_start_offset
