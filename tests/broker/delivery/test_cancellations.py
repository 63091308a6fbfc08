"""Cancellation of delayed records: once, and until delivery, under any leader."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from protocol.records.builder import NewRecord
from protocol.records.control import ControlType
from tests.broker.delivery.judged_log import judge
from tests.broker.delivery.replicated import DELAYING, LIMITS
from tests.broker.delivery.test_bounds import (
    DELAY_MS,
    append,
    cancelling,
    end,
    leading,
    passed,
    waiting,
)
from tests.broker.delivery.test_waiting_list import list_of
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from tests.broker.delivery.replicated import Replica

LATER = NewRecord(NOW_MS, None, b"later", (("deliver-after", b"1h"),))


async def check_refused(leader: Replica, offset: int) -> None:
    """Check that neither a client nor an operator can cancel it."""
    with pytest.raises(ApiError) as refused:
        append(leader, cancelling(offset))
    assert refused.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(ApiError) as refused:
        await list_of(leader).cancel(offset)
    assert refused.value.code is ErrorCode.INVALID_RECORD


async def lead_again(leader: Replica) -> None:
    """Lead as after a restart: the state comes from the log."""
    leader.resign()
    leader.die(0)
    leader.lead(1)
    await passed(1)


def test_a_cancelled_record_past_its_time_cannot_be_cancelled_again() -> None:
    async def scenario() -> None:
        leader = await leading()
        first = append(leader, waiting(b"0"), waiting(b"1"))
        await passed(1)
        append(leader, cancelling(first), cancelling(first + 1))
        await passed(1)
        append(leader, cancelling(first))  # sent twice: it still waits, and is cancelled
        await passed(DELAY_MS)

        await check_refused(leader, first)
        await check_refused(leader, first + 1)
        assert judge(leader.log).delivered == []

    run_in_virtual_time(scenario())


def test_a_record_that_a_clock_set_back_makes_due_earlier_can_be_cancelled() -> None:
    async def scenario() -> None:
        leader = await leading()
        before = append(leader, waiting(b"before"))
        append(leader, cancelling(before))
        await passed(2 * DELAY_MS)

        leader.clock.skew_ms = -2 * DELAY_MS
        soon = NewRecord(NOW_MS, None, b"after", (("deliver-after", b"100"),))
        after = append(leader, soon)
        await passed(1)
        await check_refused(leader, before)
        append(leader, cancelling(after))
        await passed(200)
        await check_refused(leader, after)
        await check_refused(leader, before)
        await passed(2 * DELAY_MS)
        assert judge(leader.log).delivered == []

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("is_transactional", [True, False])
def test_a_restart_does_not_revive_cancelled_records_past_their_time(
    *, is_transactional: bool
) -> None:
    """A record of before waits for so long that the log is read from there."""

    async def scenario() -> None:
        leader = await leading()
        append(leader, LATER)
        first = append(
            leader, waiting(b"0"), waiting(b"kept"), sequence=0 if is_transactional else -1
        )
        await passed(1)
        append(leader, cancelling(first))
        if is_transactional:
            end(leader, ControlType.COMMIT)
        await passed(2 * DELAY_MS)
        assert judge(leader.log).delivered_sources == [first + 1]
        await check_refused(leader, first)

        await lead_again(leader)

        await check_refused(leader, first)
        assert judge(leader.log).delivered_sources == [first + 1]

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("kind", [None, ControlType.COMMIT, ControlType.ABORT])
@pytest.mark.parametrize("is_restarted", [True, False])
def test_cancelled_records_whose_time_has_passed_take_no_room(
    kind: ControlType | None, *, is_restarted: bool
) -> None:
    async def scenario() -> None:
        leader = await leading()
        append(leader, LATER)
        count, in_transaction = LIMITS.cancelled_records, kind is not None
        records = [waiting(b"%d" % number) for number in range(count)]
        first = append(leader, *records, sequence=0 if in_transaction else -1)
        await passed(1)
        append(leader, *[cancelling(first + number) for number in range(count)])
        if kind is not None:
            end(leader, kind)
        append(leader, waiting(b"kept"))
        await passed(2 * DELAY_MS)
        if is_restarted:
            await lead_again(leader)

        again = append(leader, *records)
        await passed(1)
        append(leader, *[cancelling(again + number) for number in range(count)])

        await passed(2 * DELAY_MS)
        assert len(judge(leader.log).delivered) == 1

    run_in_virtual_time(scenario())


def test_a_cancellation_that_commits_after_another_has_passed_takes_no_room() -> None:
    async def scenario() -> None:
        leader = await leading()
        append(leader, LATER)
        count = LIMITS.cancelled_records
        first = append(leader, waiting(b"0"))
        await passed(1)
        append(leader, cancelling(first), sequence=0)
        append(leader, cancelling(first))
        await passed(2 * DELAY_MS)
        end(leader, ControlType.COMMIT)
        await passed(1)

        again = append(leader, *[waiting(b"%d" % number) for number in range(count)])
        await passed(1)
        append(leader, *[cancelling(again + number) for number in range(count)])

        await passed(2 * DELAY_MS)
        assert judge(leader.log).delivered == []

    run_in_virtual_time(scenario())


def test_a_dead_letter_cannot_be_cancelled_in_its_transaction_either() -> None:
    async def scenario() -> None:
        retrying = dataclasses.replace(DELAYING, retry_policy="levels", retry_max_attempts=1)
        leader = await leading(retrying)
        dead = NewRecord(NOW_MS, None, b"v", (("retry-attempt", b"1"),))
        offset = append(leader, dead, sequence=0)
        await passed(1)

        with pytest.raises(ApiError) as refused:
            await list_of(leader).cancel(offset)
        assert refused.value.code is ErrorCode.INVALID_RECORD

    run_in_virtual_time(scenario())
