"""Bounds on the memory that delayed records take per partition, and behaviour beyond them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from broker.delivery.due_batch import DueBatch
from broker.delivery.open_transactions import DecidedBatch, OpenTransactions
from broker.delivery.partition_delivery import PACE_MS
from broker.runtime.timers import Timers
from config.key import LONG_MAX
from protocol.delays.waiting_batch import build_waiting
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.control import ControlType, EndTransactionMarker, build_marker
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.broker.delivery.replicated import DELAYING, LIMITS, Replica
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from config.topic import TopicConfig

PRODUCER = 1000
DELAY_MS = 5000


def waiting(value: bytes) -> NewRecord:
    return NewRecord(NOW_MS, None, value, (("deliver-after", b"%d" % DELAY_MS),))


def cancelling(offset: int) -> NewRecord:
    return NewRecord(NOW_MS, None, None, (("deliver-cancel", b"%d" % offset),))


def append(replica: Replica, *records: NewRecord, sequence: int = -1) -> int:
    """Append a batch, in a transaction if it has a sequence number; returns its first offset."""
    is_transactional = sequence >= 0
    batch = build_batch(
        list(records),
        producer_id=PRODUCER if is_transactional else -1,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    return replica.append(memoryview(batch)).first_offset


def end(replica: Replica, kind: ControlType) -> None:
    now_ms = replica.clock.now_ms()
    marker = EndTransactionMarker(kind, 0)
    batch = build_marker(marker, producer_id=PRODUCER, producer_epoch=0, now_ms=now_ms)
    replica.append_marker(memoryview(batch))


async def leading(config: TopicConfig = DELAYING) -> Replica:
    replica = Replica(1, config)
    replica.begin_life()
    replica.lead(0)
    await passed(1)
    return replica


async def passed(milliseconds: int) -> None:
    await Timers(asyncio.get_running_loop()).sleep(milliseconds)


def test_more_records_are_not_cancelled_than_may_be_until_their_time_has_come() -> None:
    async def scenario() -> None:
        leader = await leading()
        most = LIMITS.cancelled_records
        first = append(leader, *[waiting(b"%d" % number) for number in range(most + 1)])
        await passed(1)
        for number in range(most):
            append(leader, cancelling(first + number))
            await passed(1)

        with pytest.raises(ApiError) as refused:
            append(leader, cancelling(first + most))
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
        append(leader, cancelling(first))  # it is cancelled already, which takes no more room

        await passed(2 * DELAY_MS)
        assert judge(leader.log).delivered_sources == [first + most]
        again = append(leader, waiting(b"later"))
        await passed(1)
        append(leader, cancelling(again))
        await passed(2 * DELAY_MS)
        assert judge(leader.log).delivered_sources == [first + most]
        check_complete(judge(leader.log))

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_a_cancellation_holds_once_its_transaction_commits(kind: ControlType) -> None:
    async def scenario() -> None:
        leader = await leading()
        first = append(leader, waiting(b"kept"), waiting(b"cancelled"))
        await passed(1)
        append(leader, cancelling(first + 1), sequence=0)
        await passed(1)
        end(leader, kind)
        await passed(2 * DELAY_MS)

        is_committed = kind is ControlType.COMMIT
        expected = [first] if is_committed else [first, first + 1]
        assert judge(leader.log).delivered_sources == expected

    run_in_virtual_time(scenario())


def test_a_record_delivered_before_its_cancellation_commits_stays_delivered() -> None:
    async def scenario() -> None:
        leader = await leading()
        first = append(leader, waiting(b"x"))
        await passed(1)
        append(leader, cancelling(first), sequence=0)
        await passed(2 * DELAY_MS)
        end(leader, ControlType.COMMIT)
        await passed(1)

        assert judge(leader.log).delivered_sources == [first]
        check_complete(judge(leader.log))

    run_in_virtual_time(scenario())


def test_a_transaction_of_more_records_than_memory_has_room_for_is_delivered_whole() -> None:
    async def scenario() -> None:
        leader = await leading()
        batches = 3 * LIMITS.memory_records
        for number in range(batches):
            append(leader, waiting(b"%d" % number), waiting(b"+"), sequence=2 * number)
            append(leader, waiting(b"somebody else's"))
            await passed(1)
        end(leader, ControlType.COMMIT)
        await passed(2 * DELAY_MS)

        found = judge(leader.log)
        check_order(found)
        check_complete(found)
        assert len(found.delivered) == 3 * batches

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_retention_keeps_a_delayed_record_until_its_delivery_is_committed(
    *, is_cancelled: bool
) -> None:
    """Until then it may be truncated, and the delayed record waits again."""

    async def scenario() -> None:
        leader = Replica(1, DELAYING)
        leader.begin_life()
        leader.lead(0, 2)
        log = leader.log
        first = append(leader, waiting(b"letter"))
        log.advance_high_watermark(log.log_end_offset)
        await passed(1)
        if is_cancelled:
            append(leader, cancelling(first))
        await passed(2 * DELAY_MS)
        assert len(judge(log).delivered) == (not is_cancelled)

        assert log.delays.needed_from() == first
        append(leader, NewRecord(NOW_MS, None, b"at once"))
        assert log.delays.needed_from() == first
        log.advance_high_watermark(log.log_end_offset)
        assert log.delays.needed_from() == log.log_end_offset

    run_in_virtual_time(scenario())


def test_retention_goes_on_where_the_end_of_the_log_is_never_committed() -> None:
    async def scenario() -> None:
        leader = Replica(1, DELAYING)
        leader.begin_life()
        leader.lead(0, 2)
        log = leader.log
        append(leader, waiting(b"letter"))
        await passed(2 * DELAY_MS)
        needed, ends = [], []
        for _ in range(3):
            ends.append(log.log_end_offset)
            needed.append(log.delays.needed_from())
            log.advance_high_watermark(log.log_end_offset)
            append(leader, NewRecord(NOW_MS, None, b"at once"))

        assert needed[-1] == ends[-2]

    run_in_virtual_time(scenario())


def test_retention_keeps_a_transaction_while_its_commit_is_being_read() -> None:
    async def scenario() -> None:
        leader = await leading()
        others = append(leader, waiting(b"0"), waiting(b"1"), waiting(b"2"))
        await passed(1)
        append(leader, *[cancelling(others + index) for index in range(3)], sequence=0)
        mine = append(leader, waiting(b"mine"), sequence=3)
        await passed(2 * DELAY_MS)
        assert leader.log.delays.needed_from() == mine - 3
        end(leader, ControlType.COMMIT)

        steps = 0
        while not len(leader.deliveries):
            assert leader.log.delays.needed_from() <= mine, steps
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
            steps += 1

        assert steps > 3

    run_in_virtual_time(scenario())


def test_open_transactions_keep_no_more_numbers_than_they_may() -> None:
    opened = OpenTransactions(10)
    for number in range(20):
        opened.add(number % 2, DecidedBatch(number, (-1, -2, -3), is_cancellation=False))

    assert opened.kept == 9
    assert opened.first_offset == 0
    assert opened.holds(1, 19)
    opened.abort(0)
    assert opened.kept == 3
    assert opened.first_offset == 1
    assert not opened.holds(0, 18)


def test_a_cancellation_that_is_sent_again_is_recognised_when_nothing_waits_any_more() -> None:
    async def scenario() -> None:
        leader = await leading()
        first = append(leader, waiting(b"cancelled"), waiting(b"delivered"))
        await passed(1)
        batch = build_batch(
            [cancelling(first)], producer_id=PRODUCER, producer_epoch=0, base_sequence=0
        )
        sent = leader.append(memoryview(bytearray(batch)))
        await passed(2 * DELAY_MS)

        again = leader.append(memoryview(bytearray(batch)))

        assert again.is_duplicate
        assert again.first_offset == sent.first_offset

    run_in_virtual_time(scenario())


@pytest.mark.parametrize(
    "header",
    [
        ("deliver-after", b"%d" % LONG_MAX),
        ("deliver-after", b"%d" % (LONG_MAX - 1)),
        ("deliver-at", b"%d" % LONG_MAX),
        ("deliver-at", b"%d" % (LONG_MAX + NOW_MS)),
    ],
)
def test_a_record_with_an_unrepresentable_delivery_time_is_refused(
    header: tuple[str, bytes],
) -> None:
    """It would be due at a time that cannot be written, and keep others from being delivered."""

    async def scenario() -> None:
        leader = await leading(replace(DELAYING, delivery_delay_max_ms=LONG_MAX))
        with pytest.raises(ApiError) as refused:
            append(leader, NewRecord(NOW_MS, None, b"never", (header,)))
        assert refused.value.code is ErrorCode.INVALID_RECORD

        sources = [append(leader, waiting(b"%d" % number)) for number in range(9)]
        await passed(2 * DELAY_MS)

        assert judge(leader.log).delivered_sources == sources
        assert leader.failures == []

    run_in_virtual_time(scenario())


def test_a_stored_record_with_an_unrepresentable_time_delays_no_other() -> None:
    async def scenario() -> None:
        leader = await leading()
        sent = build_batch([NewRecord(NOW_MS, None, b"never")])
        never = build_waiting(sent, parse_header(sent), [-LONG_MAX], leader.clock.now_ms())
        leader.append_marker(memoryview(never))
        sources = [append(leader, waiting(b"%d" % number)) for number in range(9)]
        await passed(2 * DELAY_MS)

        assert judge(leader.log).delivered_sources == sources
        assert leader.failures == []

    run_in_virtual_time(scenario())


def test_deleted_delayed_records_are_skipped_a_few_at_a_time() -> None:
    """A million of them would hold up the event loop for seconds when they are due."""

    async def scenario() -> None:
        leader = await leading()
        for number in range(10 * LIMITS.batch_records):
            append(leader, waiting(b"%d" % number))
        leader.log.advance_high_watermark(leader.log.log_end_offset)
        leader.log.advance_log_start_offset(leader.log.log_end_offset)
        left = append(leader, waiting(b"left"))
        await passed(1)
        delivery = leader.deliveries.of(leader.partition)
        assert delivery is not None
        followed = delivery.followed()
        count = len(followed.queue)

        due = DueBatch(DELAYING, LIMITS)
        assert due.gather(followed, leader.clock.now_ms() + 2 * DELAY_MS) is None
        assert count - len(followed.queue) == due.passed == LIMITS.batch_records

        await passed(2 * DELAY_MS)
        assert judge(leader.log).delivered_sources == [left]
        assert len(followed.queue) == 0

    run_in_virtual_time(scenario())


def test_records_that_are_due_one_after_the_other_share_batches() -> None:
    """One every two milliseconds: a batch for each would cost twice as much and more."""

    async def scenario() -> None:
        leader = await leading()
        due = [leader.clock.now_ms() + DELAY_MS + 2 * number for number in range(100)]
        for moment in due:
            append(leader, NewRecord(NOW_MS, None, b"", (("deliver-at", b"%d" % moment),)))
        first_delivered = leader.log.log_end_offset
        await passed(due[-1] + PACE_MS + 1 - leader.clock.now_ms())

        found = judge(leader.log)
        check_order(found)
        check_complete(found)
        log = leader.log
        batches = len(list(log.read_batches(first_delivered, log.log_end_offset)))
        took_ms = due[-1] - due[0]
        assert took_ms / PACE_MS / 2 <= batches <= took_ms / PACE_MS + 2

    run_in_virtual_time(scenario())
