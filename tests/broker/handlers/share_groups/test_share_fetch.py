"""ShareFetch: records once, released ones again, and waits that end when there are some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from coordinator.share_partitions.settings import AutoOffsetReset, ResetKind
from protocol.errors import ApiError, ErrorCode
from tests.broker.handlers.data_broker import TOPIC, offsets, records
from tests.broker.handlers.records.test_transactional_produce import batch, end, produce
from tests.broker.handlers.share_groups.share_broker import (
    ACCEPT,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    SETTINGS,
    ShareBroker,
    acquired,
    later,
    run_share_broker,
)
from tests.controller.harness import NOW_MS, turns

if TYPE_CHECKING:
    from pathlib import Path

ACKNOWLEDGED, ARCHIVED = 2, 4


def test_records_are_acquired_once_and_accepted_with_the_next_fetch(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()

        first = await broker.fetched(max_records=4)
        second = await broker.fetched((0, 5, ACCEPT), share_session_epoch=1)

        assert offsets(first) == [0, 1, 2, 3, 4, 5]
        assert acquired(first) == [(0, 5, 1)]
        assert acquired(second) == [(6, 8, 1)]
        assert second.acknowledge_error_code == ErrorCode.NONE
        assert broker.state.start_offset == 0
        assert broker.state.records == dict.fromkeys(range(6), (1, ACKNOWLEDGED))

    run_share_broker(tmp_path, scenario)


def test_an_answer_holds_only_batches_of_acquired_records(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=4)
        await broker.fetched()
        await broker.acknowledge(1, (4, 4, RELEASE))

        answer = await broker.fetched(share_session_epoch=2)

        assert acquired(answer) == [(4, 4, 2)]
        assert offsets(answer) == [3, 4, 5]

    run_share_broker(tmp_path, scenario)


def test_member_that_keeps_to_its_limit_gets_part_of_a_batch(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()

        answer = await broker.fetched(max_records=4, share_acquire_mode=1)

        assert acquired(answer) == [(0, 3, 1)]

    run_share_broker(tmp_path, scenario)


def test_two_members_share_the_records(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()

        one = await broker.fetched(max_records=3)
        two = await broker.fetched(max_records=3, member_id="two")
        other_group = await broker.fetched(max_records=3, group_id="others")

        assert acquired(one) == acquired(other_group) == [(0, 2, 1)]
        assert acquired(two) == [(3, 5, 1)]

    run_share_broker(tmp_path, scenario)


def test_wait_ends_when_records_come(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=0)
        waiting = broker.share_fetch(max_wait_ms=60_000)
        await turns()
        assert not waiting.is_complete

        await broker.produce({(TOPIC, 0): records(3)})

        assert acquired(await later(waiting)) == [(0, 2, 1)]

    run_share_broker(tmp_path, scenario)


def test_wait_returns_available_records_after_max_wait(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)

        waiting = broker.share_fetch(max_wait_ms=1, min_bytes=1 << 20)

        assert acquired(await later(waiting)) == [(0, 2, 1)]

    run_share_broker(tmp_path, scenario)


def test_a_released_record_goes_to_the_next_waiting_member(
    tmp_path: Path,
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=0)
        one = broker.share_fetch(max_wait_ms=60_000)
        two = broker.share_fetch(max_wait_ms=60_000, member_id="two")
        await turns()
        await broker.produce({(TOPIC, 0): records(1)})
        assert acquired(await later(one)) == [(0, 0, 1)]
        await turns()
        assert not two.is_complete

        await broker.acknowledge(1, (0, 0, RELEASE))

        assert acquired(await later(two)) == [(0, 0, 2)]

    run_share_broker(tmp_path, scenario)


def test_wait_ends_when_a_lock_expires(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        await broker.fetched()
        waiting = broker.share_fetch(max_wait_ms=60_000, member_id="two")
        broker.time.pass_(LOCK_MS - 1)
        await turns()
        assert not waiting.is_complete

        broker.time.pass_(1)

        assert acquired(await later(waiting)) == [(0, 2, 2)]
        assert broker.state.records == dict.fromkeys(range(3), (1, 0))
        late = await broker.acknowledge(1, (0, 2, ACCEPT))
        assert late.error_code == ErrorCode.INVALID_RECORD_STATE

    run_share_broker(tmp_path, scenario)


def test_renewed_lock_does_not_expire(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        await broker.fetched()
        broker.time.pass_(LOCK_MS // 2)

        zeros = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
        renewed = await broker.fetched(
            (0, 2, RENEW), share_session_epoch=1, is_renew_ack=True, **zeros
        )
        broker.time.pass_(LOCK_MS // 2)
        accepted = await broker.acknowledge(2, (0, 2, ACCEPT))

        assert renewed.acknowledge_error_code == accepted.error_code == ErrorCode.NONE
        with pytest.raises(ApiError, match="max_records"):
            broker.share_fetch(
                (0, 2, RENEW),
                share_session_epoch=3,
                is_renew_ack=True,
                **{**zeros, "max_records": 1},
            )

    run_share_broker(tmp_path, scenario)


def test_gap_and_rejected_records_never_come_again(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        await broker.fetched()

        await broker.acknowledge(1, (0, 2, GAP, REJECT, RELEASE))

        assert broker.state.records == {0: (1, ARCHIVED), 1: (1, ARCHIVED), 2: (1, 0)}
        assert acquired(await broker.fetched(share_session_epoch=2)) == [(2, 2, 2)]

    run_share_broker(tmp_path, scenario)


COORDINATOR_IS_AWAY = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)


@pytest.mark.parametrize("code", COORDINATOR_IS_AWAY)
def test_error_of_a_coordinator_that_is_away_is_one_that_stock_consumers_ask_again_after(
    tmp_path: Path, code: ErrorCode
) -> None:
    """Apache Kafka's throws IllegalStateException at errors of coordinators."""

    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        broker.state.refusal = code

        refused = await broker.fetched()
        broker.state.refusal = None

        assert refused.error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert acquired(await broker.fetched(share_session_epoch=1)) == [(0, 2, 1)]

    run_share_broker(tmp_path, scenario)


@pytest.mark.parametrize("code", COORDINATOR_IS_AWAY)
def test_acknowledgement_is_refused_with_an_error_that_passes_while_the_coordinator_is_away(
    tmp_path: Path, code: ErrorCode
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        await broker.fetched()
        broker.state.refusal = code

        refused = await broker.acknowledge(1, (0, 2, ACCEPT))

        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run_share_broker(tmp_path, scenario)


def test_acknowledgement_that_is_not_stored_is_refused_and_can_be_repeated(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        await broker.fetched()
        broker.state.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE

        refused = await broker.acknowledge(1, (0, 2, ACCEPT))
        broker.state.refusal = None
        accepted = await broker.acknowledge(2, (0, 2, ACCEPT))

        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert accepted.error_code == ErrorCode.NONE

    run_share_broker(tmp_path, scenario)


def test_a_record_archived_without_being_stored_is_stored_before_its_acknowledgement(
    tmp_path: Path,
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        taken: list[tuple[int, int, int]] = []
        while taken != [(2, 2, SETTINGS.delivery_count_limit)]:
            taken = acquired(await broker.fetched())
            assert taken, "each is delivered alone for the last time"
            broker.state.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
            broker.time.pass_(LOCK_MS)
            broker.state.refusal = None
        assert broker.state.start_offset == 0
        broker.state.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE

        refused = await broker.acknowledge(1, (2, 2, ACCEPT))
        broker.state.refusal = None
        accepted = await broker.acknowledge(2, (2, 2, ACCEPT))
        again = await broker.acknowledge(3, (2, 2, ACCEPT))

        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert accepted.error_code == again.error_code == ErrorCode.NONE
        assert broker.state.start_offset == 3
        assert len(broker.state.changes) == 2, "once it is stored, that is enough"

    run_share_broker(tmp_path, scenario)


def test_acknowledgements_that_come_during_a_write_are_stored_together(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=4)
        await broker.fetched()
        broker.state.changes.clear()
        broker.state.is_held = True
        answers = [
            broker.share_fetch((first, first + 2, ACCEPT), share_session_epoch=number + 1)
            for number, first in enumerate(range(0, 12, 3))
        ]
        assert not answers[0].is_complete

        broker.state.let_go()

        assert [len(change.batches) for change in broker.state.changes] == [1, 3]
        assert all(answer.is_complete for answer in answers)
        assert broker.state.changes[1].start_offset == 3
        assert broker.state.changes[1].delivery_complete_count == 9

    run_share_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        (AutoOffsetReset(ResetKind.LATEST), 6),
        (AutoOffsetReset(ResetKind.EARLIEST), 0),
        (AutoOffsetReset(ResetKind.BY_DURATION, 5_000), 3),
        (AutoOffsetReset(ResetKind.BY_DURATION, 0), 6),
    ],
)
def test_a_new_group_starts_at_its_auto_offset_reset_and_stores_it(
    reset: AutoOffsetReset, start: int, tmp_path: Path
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.create_topic()
        for age_ms in (10_000, 1000):
            await broker.produce({(TOPIC, 0): records(3, timestamp=NOW_MS - age_ms)})
        broker.set(auto_offset_reset=reset)
        waiting = broker.share_fetch(max_wait_ms=60_000)
        while broker.state.start_offset < 0:
            await turns()
        await broker.produce({(TOPIC, 0): records(1)})

        assert acquired(await later(waiting))[0][0] == start
        assert broker.state.start_offset == start

    run_share_broker(tmp_path, scenario)


def test_aborted_records_are_hidden_from_a_group_that_reads_committed(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        broker.set(is_read_committed=True)
        await broker.fill(batches=1)
        await produce(broker, batch())
        while_it_is_open = await broker.fetched()
        end(broker, epoch=1, version=2, commits=False)
        await broker.produce({(TOPIC, 0): records(1)})

        rest = await broker.fetched(share_session_epoch=1)

        assert acquired(while_it_is_open) == [(0, 2, 1)]
        assert acquired(rest) == [(4, 5, 1)]

    run_share_broker(tmp_path, scenario)


def test_records_that_were_deleted_are_not_waited_for(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched(max_records=3)
        broker.partition.log.advance_log_start_offset(7)

        late = await broker.acknowledge(1, (0, 2, RELEASE))
        rest = await broker.fetched(share_session_epoch=2)

        assert late.error_code == ErrorCode.NONE
        assert acquired(rest) == [(7, 8, 1)]

    run_share_broker(tmp_path, scenario)


def test_no_more_records_are_locked_than_configured(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        broker.set(max_record_locks=6)
        await broker.fill()

        first = await broker.fetched()
        second = await broker.fetched(share_session_epoch=1)
        third = await broker.fetched((0, 2, ACCEPT), share_session_epoch=2)

        assert acquired(first) == [(0, 5, 1)]
        assert second is None
        assert acquired(third) == [(6, 8, 1)]

    run_share_broker(tmp_path, scenario)


def test_fetch_that_waits_is_given_up_with_its_client(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=0)
        waiting: Any = broker.share_fetch(max_wait_ms=60_000)

        waiting.abandon()
        await broker.produce({(TOPIC, 0): records(3)})
        await turns()

        assert acquired(await broker.fetched(member_id="two")) == [(0, 2, 1)]

    run_share_broker(tmp_path, scenario)
