"""Delivery in one partition, as long as this broker leads it.

    load       the delivery position and the waiting records, from the log
    follow     records appended since
    deliver    due records, as one batch that is appended; repeatedly
    wait       until a record is due, or appended

In a retry topic a task beside it sends dead letters on (`dead_letter_relay`).

A batch is built and appended in one go, right after the log was followed to its end. So no record
can be appended in between that would have had to be delivered before, which is what the delivery
point in the batch states (`protocol.delays.delivered_batch`). Any failure discards the state, and
the log is loaded again, after a growing pause: it has everything delivered. If the delay index of a
segment is damaged, it is rebuilt from the log first.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.delivery.dead_letter_relay import DeadLetterRelay
from broker.delivery.due_batch import DueBatch
from broker.delivery.followed_log import FollowedLog
from broker.delivery.sources import OpenedBatch, open_batch
from broker.partitions.delay_repair import rebuild_delays
from broker.runtime.deferred import awaited
from broker.runtime.supervision import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from protocol.errors import ApiError, ErrorCode
from storage.append.append_source import FROM_COORDINATOR
from storage.delays.delaying_appends import DelayingAppends
from storage.errors import DamagedDelaysError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.delivery.delivery_parts import DeliveryParts
    from broker.partitions.partition import Partition
    from protocol.records.record import Record

logger = logging.getLogger(__name__)

LONGEST_WAIT_MS: Final = 1_000
"""Then the clock is looked at again: it may have been set."""
PACE_MS: Final = 5
"""Pause between two batches, unless more records are due than fit into one.

Fixed: it bounds batches to 200 a second for each partition, and the wait of a record besides its
delay; the documented bound is a hundred milliseconds.
"""
ONE_ACK: Final = 1


class PartitionDelivery:
    """The work on one partition; `run` is its task, and `stop` ends it."""

    def __init__(self, partition: Partition, parts: DeliveryParts) -> None:
        """The log's appends must look at delays (`Log.prepare_delays`)."""
        self._parts = parts
        self._relay: DeadLetterRelay | None = None
        self.partition = partition
        self._log = partition.log
        self._name = f"{partition.topic}-{partition.index}"
        self._clock, self._timers, _, self._slices, self._note = parts.loop
        self._compute_pool = parts.compute_pool
        self._followed: FollowedLog | None = None
        self._is_over = False
        self._paced_until_ms = 0
        """By the monotonic clock: no batch is appended before."""
        self._damage: DamagedDelaysError | None = None
        """Damage of a delay index, to be repaired before the log is loaded again."""
        self._waker: asyncio.Future[None] | None = None
        self._kept_from = 0
        """Lowest offset that waiting records need, once the batch stating it is committed."""
        self._known_from = self._known_at = 0
        """The same, by the state of the log up to the second of the two; maybe not committed."""
        appends = self._log.leader_appends
        assert isinstance(appends, DelayingAppends)
        self._appends = appends
        appends.listen(self._poke, self._check_waiting)
        self._log.offsets.waiting_from = self._needed_from

    def __len__(self) -> int:
        """Records that wait, as far as is known."""
        return 0 if self._followed is None else len(self._followed.queue)

    @property
    def dead_letters(self) -> int:
        """Dead letters that have not arrived, as far as is known."""
        return 0 if self._followed is None else len(self._followed.dead)

    def stop(self) -> None:
        """Stop: another broker delivers, or none."""
        self._is_over = True
        self._appends.listen(None, None)
        self._log.offsets.waiting_from = None
        self._wake()

    def note_damage(self, damage: DamagedDelaysError) -> None:
        """Note damage in a delay index of this log, found elsewhere: it is rebuilt."""
        self._damage = damage
        self._wake()

    def is_over(self) -> bool:
        """Return whether `stop` was called."""
        return self._is_over

    async def run(self) -> None:
        """Deliver until `stop` is called, or the disk fails."""
        pause_ms = FIRST_PAUSE_MS
        while not self._is_over:
            began_ms = self._clock.monotonic_ms()
            damage, self._damage = self._damage, None
            try:
                if damage is not None:
                    threads = self._parts.disk_threads
                    await rebuild_delays(self._log, damage, self._slices(), threads, self.is_over)
                await self._deliver()
                self._forget()
            except Exception as error:  # noqa: BLE001 - reported
                self._forget()
                if self._is_over or self._log.directory.failure is not None:
                    return  # the replica is another's, or its disk has failed, which was logged
                if self._clock.monotonic_ms() - began_ms > LONGEST_PAUSE_MS:
                    pause_ms = FIRST_PAUSE_MS
                self._damage = error if isinstance(error, DamagedDelaysError) else None
                self._tell(error)
                await self._wait(pause_ms)
                pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)
        self._forget()

    async def _deliver(self) -> None:
        followed = self._followed = FollowedLog(self._log, self._slices, self._parts.limits)
        await followed.follow(self.is_over)
        if len(followed.queue):
            count = len(followed.queue)
            logger.info("delivery: %s has %d records that wait", self._name, count)
        loop, ports = self._parts.loop, self._parts.dead_letters
        self._relay = DeadLetterRelay(self.partition, followed.dead, self.record, loop, ports)
        await self._serve(followed)

    async def _serve(self, followed: FollowedLog) -> None:
        """Return when the work is over, or the log must be loaded again."""
        slices = self._slices()
        while not self._is_over and not followed.is_outdated:
            if self._damage is not None:
                raise self._damage
            if followed.is_poked:
                await followed.follow(self.is_over)
                if self.is_over():
                    return
            if self._relay is not None:
                self._relay.poke()
            pace_ms = self._paced_until_ms - self._clock.monotonic_ms()
            if pace_ms > 0 and len(followed.queue):
                await self._wait(pace_ms)
                continue
            batch = DueBatch(self._log.config, self._parts.limits)
            unopened = batch.gather(followed, self._clock.now_ms())
            if unopened is not None:
                followed.sources.add(await self.opened(unopened))
            elif len(batch):
                self._append(batch, followed)
                await slices.give_way()
            elif batch.passed:
                await slices.give_way()
            else:
                await self._wait(self._pause_until_due(followed))

    def _append(self, batch: DueBatch, followed: FollowedLog) -> None:
        assert not followed.is_poked, "something that waits was not taken into account"
        records = followed.records
        data = batch.build(followed.needed_from())
        now_ms = self._clock.now_ms()
        info = self.partition.append_records(data, ONE_ACK, FROM_COORDINATOR, now_ms)
        records.deliver(batch.last, info.first_offset)
        if not batch.is_full:
            self._paced_until_ms = self._clock.monotonic_ms() + PACE_MS
        followed.is_poked = True  # the delivery itself is to be followed

    def followed(self) -> FollowedLog:
        """The log as it is followed; raises ApiError while it is being loaded."""
        if self._followed is None or not self._followed.is_loaded:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "what waits is being loaded")
        return self._followed

    def now_ms(self) -> int:
        """The time by which records are due."""
        return self._clock.now_ms()

    def check_room(self, offsets: Sequence[int]) -> None:
        """Raises ApiError if the records at these offsets are too many to be cancelled."""
        if not self.followed().has_room_for(offsets):
            text = "as many records are cancelled as delivery.cancelled.max.records allows"
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)

    async def record(self, offset: int) -> Record | None:
        """The record that waits at an offset; None when it is gone, or cancelled."""
        followed = self._followed
        if followed is None or followed.is_gone(offset):
            return None
        found = followed.sources.find(offset)
        if isinstance(found, memoryview):
            found = followed.sources.add(await self.opened(found))
        return None if found is None else found.record(offset)

    async def opened(self, batch: memoryview) -> OpenedBatch:
        """The batch, opened beside the event loop."""
        return await awaited(self._compute_pool.run(partial(open_batch, batch)))

    def _pause_until_due(self, followed: FollowedLog) -> int | None:
        """None when nothing waits."""
        head = followed.queue.peek()
        if head is None:
            return None
        return min(max(head.stated_ms - self._clock.now_ms(), 1), LONGEST_WAIT_MS)

    async def _wait(self, pause_ms: int | None) -> None:
        """Return when something was appended, or after the pause."""
        self._waker = waker = asyncio.get_running_loop().create_future()
        timer = None if pause_ms is None else self._timers.schedule(pause_ms, self._wake)
        try:
            await waker
        finally:
            self._waker = None
            if timer is not None:
                timer.cancel()

    def _poke(self) -> None:
        """Something was appended."""
        if self._followed is not None:
            self._followed.is_poked = True
            self._wake()  # and end no pause after an error

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _needed_from(self) -> int:
        """Lowest offset that retention must keep for waiting records; that is committed.

        The end of a wait, by delivery or cancellation, may yet be truncated, and be unknown to
        another leader. So the current state counts once the current log is committed: at once
        without appends under way, else at a later call.
        """
        followed, log = self._followed, self._log
        if followed is None or not followed.is_loaded:
            return max(self._kept_from, log.delays.needed_as_told_by_log())
        if self._known_at <= log.high_watermark:
            self._kept_from = self._known_from
            first, self._known_at = followed.needed_from(), log.log_end_offset
            is_waiting = first < self._known_at
            self._known_from = log.delays.needed_for(first) if is_waiting else first
        if self._known_at <= log.high_watermark:
            self._kept_from = self._known_from
        return self._kept_from

    def _check_waiting(self, offsets: Sequence[int]) -> None:
        """For cancellations: raises ApiError unless a record waits at each offset."""
        followed = self.followed()
        for offset in offsets:
            if not followed.waits(offset):
                raise ApiError(ErrorCode.INVALID_RECORD, f"no record waits at offset {offset}")
        self.check_room(offsets)

    def _forget(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.stop()
        followed, self._followed = self._followed, None
        if followed is not None:
            followed.close()

    def _tell(self, error: Exception) -> None:
        if isinstance(error, DamagedDelaysError):
            text = "delivery: %s is interrupted, the index is made anew from the log: %s"
            logger.warning(text, self._name, error)
        elif isinstance(error, ApiError):
            text = "delivery: %s is interrupted, trying again: %s"
            logger.warning(text, self._name, error)
        else:
            self._note(f"delivery of {self._name}", error, "delivery")
