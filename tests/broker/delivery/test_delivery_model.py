"""Drawn delays, transactions, deaths, leader changes and wrong clocks: each record once, in order.

What was sent and is certain to stay is noted; at the end the log is read from its start, without
any index, and held against that.
"""

from __future__ import annotations

import asyncio
import dataclasses
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from broker.runtime.timers import Timers
from protocol.errors import ApiError, ErrorCode
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.control import ControlType, EndTransactionMarker, build_marker
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.broker.delivery.replicated import DELAYING, Replica
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from storage.log.log import Log

SEEDS = range(24)
STEPS = 80
LONGEST_MS = 20_000
RETAINING = dataclasses.replace(DELAYING, retention_bytes=6000)
DELAYS = b"0", b"1", b"40ms", b"1s", b"2s", b"2s", b"9s", b"20s"


class Scenario:
    """One seed."""

    config = DELAYING

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.replicas = [Replica(number, self.config) for number in (1, 2, 3)]
        self.leader = self.replicas[0]
        self.epoch = 0
        self.sent: dict[int, bytes] = {}
        """Values by offset; those below `committed` are certain to stay."""
        self.committed = 0
        self.looked_up_to = 0
        self.values = 0
        self.producers = 0
        self.sequence = 0
        self.last_batch = b""
        self.last_offset = -1

    async def run(self) -> None:
        for replica in self.replicas:
            replica.begin_life()
        self.leader.lead(0)
        steps = self.steps()
        for _ in range(STEPS):
            (step,) = self.random.choices(list(steps), list(steps.values()))
            await step()
            self.look()
        await self.settle()

    def steps(self) -> dict[Callable[[], Coroutine[Any, Any, object]], int]:
        """Return the possible steps, with their weights."""
        return {
            self.produce: 8,
            self.repeat: 1,
            self.produce_in_transaction: 2,
            self.cancel: 1,
            self.replicate: 8,
            self.change_leader: 1,
            self.kill_leader: 1,
            self.kill_follower: 1,
            self.set_clock: 1,
            self.retain: 2,
            self.pause: 8,
        }

    async def produce(self) -> None:
        records = self.drawn_records()
        codec = self.random.choice([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP])
        batch = build_batch(
            records,
            codec=codec,
            producer_id=7,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        self.last_batch = bytes(batch)
        info = self.leader.append(memoryview(batch))
        self.sequence += len(records)
        self.last_offset = info.first_offset
        self.note(records, info.first_offset)

    async def repeat(self) -> None:
        """The producer heard nothing and sends its last batch again."""
        if not self.last_batch:
            return
        end = self.leader.log.log_end_offset
        info = self.leader.append(memoryview(bytearray(self.last_batch)))
        assert info.is_duplicate
        assert info.first_offset == self.last_offset
        assert self.leader.log.log_end_offset == end

    async def produce_in_transaction(self) -> None:
        self.producers += 1
        producer_id = 1000 + self.producers
        sequence = 0
        for _ in range(self.random.randint(1, 3)):
            records = self.drawn_records()
            batch = build_batch(
                records,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            )
            sequence += len(records)
            info = self.leader.append(memoryview(batch))
            self.note(records, info.first_offset)
            if self.random.random() < 0.5:
                sequence += await self.cancel((producer_id, sequence))
            await self.pause()
            self.look()
        kind = self.random.choice([ControlType.COMMIT, ControlType.COMMIT, ControlType.ABORT])
        end = EndTransactionMarker(kind, 0)
        now_ms = self.leader.clock.now_ms()
        marker = build_marker(end, producer_id=producer_id, producer_epoch=0, now_ms=now_ms)
        self.leader.append_marker(memoryview(marker))

    async def cancel(self, transaction: tuple[int, int] | None = None) -> int:
        """Cancel a record, perhaps in a transaction; returns how many sequence numbers it took."""
        offset = self.random.choice([*self.sent, 10**9])
        headers = (("deliver-cancel", b"%d" % offset),)
        producer_id, sequence = transaction or (-1, -1)
        batch = build_batch(
            [NewRecord(NOW_MS, b"any", None, headers)],
            producer_id=producer_id,
            producer_epoch=min(producer_id, 0),
            base_sequence=sequence,
            is_transactional=transaction is not None,
        )
        is_delivered = offset in judge(self.whole_log()).delivered_sources
        code = ErrorCode.NONE
        try:
            self.leader.append(memoryview(batch))
        except ApiError as error:
            code = error.code
        refusals = {
            ErrorCode.INVALID_RECORD,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.POLICY_VIOLATION,
        }
        assert code in (refusals if is_delivered else refusals | {ErrorCode.NONE})
        return int(code is ErrorCode.NONE)

    async def replicate(self) -> None:
        for replica in self.replicas:
            if replica is not self.leader:
                replica.fetch_from(self.leader, self.random.randint(0, 10))
        ends = [replica.log.log_end_offset for replica in self.replicas]
        self.committed = max(self.committed, min(ends))

    async def change_leader(self) -> None:
        """Elect another leader; records that it lacks are lost, and were never acknowledged."""
        self.leader.resign()
        able = [one for one in self.replicas if one.log.log_end_offset >= self.committed]
        self.leader = new = self.random.choice(able)
        end = new.log.log_end_offset
        for replica in self.replicas:
            replica.log.truncate_to(end)
        self.sent = {offset: value for offset, value in self.sent.items() if offset < end}
        self.looked_up_to = min(self.looked_up_to, end)
        self.epoch += 1
        self.sequence, self.last_batch = 0, b""
        new.lead(self.epoch)

    async def kill_leader(self) -> None:
        self.leader.resign()
        self.leader.die(self.random.randint(0, self.leader.log.log_end_offset))
        await self.change_leader()

    async def kill_follower(self) -> None:
        follower = self.random.choice([one for one in self.replicas if one is not self.leader])
        if self.random.random() < 0.5:
            follower.die(0, self.random)
            follower.truncate_where_it_differs_from(self.leader)
        else:
            follower.die(self.random.randint(0, follower.log.log_end_offset))

    async def set_clock(self) -> None:
        self.random.choice(self.replicas).clock.skew_ms = self.random.randint(-5000, 5000)

    async def retain(self) -> None:
        log = self.random.choice(self.replicas).log
        log.config = RETAINING
        log.delete_expired(NOW_MS)
        log.config = DELAYING

    async def pause(self) -> None:
        await Timers(asyncio.get_running_loop()).sleep(self.random.choice([0, 1, 300, 3000]))

    async def settle(self) -> None:
        """The clocks are right, and time passes beyond the last delay."""
        for replica in self.replicas:
            replica.clock.skew_ms = 0
        await Timers(asyncio.get_running_loop()).sleep(2 * LONGEST_MS)
        self.look()

    def check(self) -> None:
        """Check the log of the last leader at the end."""
        log = self.leader.log
        found = judge(log)
        check_order(found)
        check_complete(found)
        for offset, value in self.sent.items():
            if offset >= log.log_start_offset:
                waited = found.waited.get(offset)
                kept = found.direct[offset] if waited is None else waited.record
                assert kept.value == value
        first = min(found.opened.values(), default=log.log_end_offset)
        before = log.delays.last_delivered(first)
        if before is not None and first < log.log_end_offset:
            first = before.offset
        assert log.delays.needed_from() == first
        assert [replica.failures for replica in self.replicas] == [[], [], []]

    def look(self) -> None:
        """Check that nothing is delivered before the leader's clock permits it."""
        log, now_ms = self.leader.log, self.leader.clock.now_ms()
        found = judge(self.whole_log())
        for one in found.delivered:
            if one.at >= self.looked_up_to:
                waited = found.waited.get(one.source)
                stated_ms = one.record.timestamp if waited is None else waited.stated_ms
                assert stated_ms is not None
                assert stated_ms <= now_ms
        self.looked_up_to = log.log_end_offset

    def whole_log(self) -> Log:
        """The leader's log, with all that was ever appended."""
        return self.leader.log

    def drawn_records(self) -> list[NewRecord]:
        return [self._drawn_record() for _ in range(self.random.randint(1, 4))]

    def note(self, records: list[NewRecord], first_offset: int) -> None:
        for index, record in enumerate(records):
            assert record.value is not None
            self.sent[first_offset + index] = record.value

    def _drawn_record(self) -> NewRecord:
        self.values += 1
        value = b"%d-" % self.values + bytes(self.random.choice([0, 10, 300]))
        now_ms = self.leader.clock.now_ms()
        kind = self.random.random()
        headers: tuple[tuple[str, bytes], ...] = (("own", b"header"),)
        if kind < 0.5:
            headers += (("deliver-after", self.random.choice(DELAYS)),)
        elif kind < 0.7:
            at_ms = now_ms + self.random.randint(-LONGEST_MS, LONGEST_MS)
            headers += (("deliver-at", b"%d" % at_ms),)
        return NewRecord(now_ms - 3, b"key", value, headers)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_is_delivered_once_in_order_and_never_early(seed: int) -> None:
    scenario = Scenario(seed)
    run_in_virtual_time(scenario.run())
    scenario.check()
