"""The log of one partition as its leader follows it: what waits, up to the last append."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.delivery.relay_plan import RelayPlan
from broker.delivery.sources import Sources
from broker.delivery.waiting_queue import Waiting, WaitingQueue
from broker.delivery.waiting_records import WaitingRecords

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.slices import Slices
    from storage.log.log import Log


class FollowedLog:
    """Made when this broker begins to lead; `follow` until it returns, then after each poke."""

    def __init__(self, log: Log, slices: Callable[[], Slices]) -> None:
        """Find out how far delivery has come, and where what waits begins."""
        self._log = log
        self._slices = slices
        point = log.delays.point()
        first = log.delays.first_to_read(point.waiting_from)
        before = log.delays.last_delivered(first)
        queue = WaitingQueue(log.directory.disk.filesystem, log.path)
        reached_ms = -1 if before is None else before.timestamp
        self.dead = RelayPlan(log.delays.last_relay())
        """Dead letters, if this is a retry topic."""
        delivered = Waiting(point.due_ms, point.offset)
        self.records = WaitingRecords(queue, self.dead, delivered, reached_ms)
        self.queue = queue
        self.sources = Sources(log.delays.read_holding)
        self._cursor = first
        self.is_poked = True
        """Something that has to do with delays was appended and is not followed yet."""
        self.is_loaded = False
        """It was followed to the end once."""

    async def follow(self, is_over: Callable[[], bool]) -> None:
        """Take in what was appended, in slices. Nothing was since, when this returns.

        Or it `is_over`, and the log is another's.
        """
        delays, records = self._log.delays, self.records
        slices = self._slices()
        is_at_end = False
        while not is_at_end:
            is_at_end = True
            for entry in delays.entries_from(self._cursor):
                is_at_end = False
                await slices.give_way()
                for _ in records.follow(entry, delays.read):
                    await slices.give_way()
                if is_over():
                    return
                self._cursor = entry.offset + 1
        self.is_poked = False
        self.is_loaded = True

    def needed_from(self) -> int:
        """Nothing before this offset waits."""
        if not self.is_loaded:
            return self._log.delays.point().waiting_from
        # What was not followed yet may wait. Without a poke, all that was appended does not.
        return self.records.needed_from(self._cursor if self.is_poked else self._log.log_end_offset)

    def waits(self, offset: int) -> bool:
        """See `WaitingRecords.waits`."""
        return self.records.waits(offset, self._log.delays)

    def is_gone(self, offset: int) -> bool:
        """Whether a record that waited is not to be delivered."""
        return offset in self.records.cancelled or offset < self._log.log_start_offset
