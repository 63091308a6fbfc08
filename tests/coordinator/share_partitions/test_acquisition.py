"""Acquisition of records: limits, batches, redelivery, and records that make members fail."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import pytest

from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
from coordinator.share_partitions.acquisition import Acquired, FetchedBatch, Wanted
from coordinator.share_partitions.in_flight import InFlightRecords, load
from coordinator.share_partitions.record_range import AcknowledgeType
from coordinator.share_partitions.record_ranges import RecordRanges
from coordinator.share_partitions.settings import ShareGroupSettings
from coordinator.share_state.state import DeliveryState, StateBatch, StoredState
from protocol.errors import ApiError, ErrorCode
from tests.support.broker_parts.steps import finished

SETTINGS = ShareGroupSettings(
    delivery_count_limit=5, max_record_locks=1000, record_lock_duration_ms=1000
)
TENS = [FetchedBatch(first, first + 9) for first in range(0, 100, 10)]


def records(settings: ShareGroupSettings = SETTINGS, start: int = 0) -> InFlightRecords:
    return InFlightRecords(RecordRanges(start), settings)


def acquire(
    share: InFlightRecords,
    log: list[FetchedBatch] = TENS,
    now_ms: int = 0,
    **fields: Any,
) -> list[Acquired]:
    offset = share.next_fetch_offset
    found = [batch for batch in log if batch.last >= offset]
    wanted = Wanted("m", offset, 500, 500)._replace(**fields)
    return share.acquire(wanted, found, now_ms)


def acknowledge(
    share: InFlightRecords, first: int, last: int, *types: AcknowledgeType, member: str = "m"
) -> list[StateBatch]:
    batch = AcknowledgementBatch(first, last, types)
    transition = finished(share.acknowledge(member, [batch], 0))
    changes = share.changes_of(transition)
    share.commit(transition)
    return changes


def test_batches_are_not_split_for_the_limit() -> None:
    assert acquire(records(), max_records=25) == [Acquired(0, 29, 1)]


def test_batches_are_split_for_a_member_that_keeps_to_its_limit() -> None:
    share = records()

    assert acquire(share, max_records=25, keeps_to_limit=True) == [Acquired(0, 24, 1)]
    assert acquire(share, max_records=10, keeps_to_limit=True) == [
        Acquired(25, 29, 1),
        Acquired(30, 34, 1),
    ]


def test_answer_is_divided_at_batches_into_the_size_asked_for() -> None:
    assert acquire(records(), max_records=50, batch_size=15) == [
        Acquired(0, 19, 1),
        Acquired(20, 39, 1),
        Acquired(40, 49, 1),
    ]


def test_no_more_is_acquired_than_may_be_locked() -> None:
    share = records(dataclasses.replace(SETTINGS, max_record_locks=20))
    acquire(share)

    assert not share.can_acquire
    assert acquire(share) == []


def test_released_record_can_be_acquired_though_all_locks_are_used() -> None:
    share = records(dataclasses.replace(SETTINGS, max_record_locks=20))
    acquire(share)
    acknowledge(share, 5, 6, AcknowledgeType.RELEASE)

    assert share.can_acquire
    assert acquire(share, member_id="n") == [Acquired(5, 6, 2)]


def test_released_records_come_before_new_ones() -> None:
    share = records()
    acquire(share, max_records=20)
    acknowledge(share, 12, 14, AcknowledgeType.RELEASE)

    assert acquire(share, max_records=10) == [Acquired(12, 14, 2), Acquired(20, 29, 1)]


def test_records_that_fail_are_delivered_in_fewer_pieces_and_at_last_alone() -> None:
    share = records()
    batch = [FetchedBatch(0, 99)]
    sizes = []
    for _ in range(6):
        acquired = acquire(share, log=batch)
        sizes.append(sum(one.last - one.first + 1 for one in acquired))
        for one in acquired:
            acknowledge(share, one.first, one.last, AcknowledgeType.RELEASE)

    assert sizes == [100, 100, 100, 50, 1, 1]
    assert next((one.first, one.last) for one in share.ranges) == (2, 49)


def test_record_is_archived_after_its_last_delivery() -> None:
    share = records()
    changes: list[StateBatch] = []
    for _ in range(5):
        acquire(share, log=[FetchedBatch(0, 0)])
        changes = acknowledge(share, 0, 0, AcknowledgeType.RELEASE)

    assert changes == [StateBatch(0, 0, DeliveryState.ARCHIVED, 5)]
    assert share.next_fetch_offset == share.ranges.start == 1


def test_each_record_may_have_an_acknowledgement_of_its_own() -> None:
    share = records()
    acquire(share, max_records=10)
    accept, release, reject = (
        AcknowledgeType.ACCEPT,
        AcknowledgeType.RELEASE,
        AcknowledgeType.REJECT,
    )

    changes = acknowledge(share, 0, 4, accept, accept, release, reject, AcknowledgeType.GAP)

    assert changes == [
        StateBatch(0, 1, DeliveryState.ACKNOWLEDGED, 1),
        StateBatch(2, 2, DeliveryState.AVAILABLE, 1),
        StateBatch(3, 4, DeliveryState.ARCHIVED, 1),
    ]
    assert share.ranges.start == 2


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (0, 9, "another", ErrorCode.INVALID_RECORD_STATE),
        (5, 30, "m", ErrorCode.INVALID_REQUEST),
        (300, 400, "m", ErrorCode.INVALID_REQUEST),
    ],
)
def test_acknowledging_records_not_acquired_is_refused(
    first: int, last: int, member: str, code: ErrorCode
) -> None:
    share = records()
    acquire(share, max_records=20)

    with pytest.raises(ApiError) as raised:
        acknowledge(share, first, last, AcknowledgeType.ACCEPT, member=member)

    assert raised.value.code is code


def test_one_bad_batch_takes_back_those_before_it() -> None:
    share = records()
    acquire(share, max_records=20)
    accept = [AcknowledgeType.ACCEPT]

    with pytest.raises(ApiError):
        finished(
            share.acknowledge(
                "m", [AcknowledgementBatch(0, 4, accept), AcknowledgementBatch(4, 9, accept)], 0
            )
        )

    assert share.ranges.final_count == 0
    acknowledge(share, 0, 19, AcknowledgeType.ACCEPT)
    assert share.ranges.start == 20


def test_expired_lock_lets_others_have_the_record() -> None:
    share = records()
    acquire(share, max_records=10)

    assert share.earliest_lock_ms == 1000
    assert share.expire_locks(999) == []
    assert share.expire_locks(1000) == [StateBatch(0, 9, DeliveryState.AVAILABLE, 1)]
    with pytest.raises(ApiError):
        acknowledge(share, 0, 9, AcknowledgeType.ACCEPT)
    assert acquire(share, max_records=10, member_id="n", now_ms=1000) == [Acquired(0, 9, 2)]


def test_renewed_lock_lasts_as_long_again() -> None:
    share = records()
    acquire(share, max_records=10)
    renewal = AcknowledgementBatch(0, 4, [AcknowledgeType.RENEW])

    finished(share.acknowledge("m", [renewal], 600))

    assert share.expire_locks(1000) == [StateBatch(5, 9, DeliveryState.AVAILABLE, 1)]
    assert share.earliest_lock_ms == 1600


def test_renewal_is_refused_where_the_group_has_it_disabled() -> None:
    share = records(dataclasses.replace(SETTINGS, is_renewal_enabled=False))
    acquire(share, max_records=10)

    with pytest.raises(ApiError):
        acknowledge(share, 0, 4, AcknowledgeType.RENEW)


def test_step_that_cannot_be_stored_leaves_the_record_with_its_member() -> None:
    share = records()
    acquire(share, max_records=10)
    accept = AcknowledgementBatch(0, 9, [AcknowledgeType.ACCEPT])
    transition = finished(share.acknowledge("m", [accept], 0))

    with pytest.raises(ApiError):
        finished(share.acknowledge("m", [accept], 0))
    share.roll_back(transition, 500)

    assert acquire(share, max_records=10, member_id="n")[0].first == 10
    acknowledge(share, 0, 9, AcknowledgeType.ACCEPT)


def test_step_that_cannot_be_stored_until_the_lock_expired_releases_the_record() -> None:
    share = records()
    acquire(share, max_records=10)
    transition = finished(
        share.acknowledge("m", [AcknowledgementBatch(0, 9, [AcknowledgeType.ACCEPT])], 0)
    )
    assert share.expire_locks(1000) == []

    share.roll_back(transition, 1000)

    assert acquire(share, max_records=10, member_id="n") == [Acquired(0, 9, 2)]


def test_compacted_records_are_archived() -> None:
    share = records()
    acquire(share, max_records=20)
    acknowledge(share, 0, 19, AcknowledgeType.RELEASE)

    acquired = acquire(share, max_records=10, log=[FetchedBatch(12, 19)])

    assert acquired == [Acquired(12, 19, 2)]
    assert share.ranges.start == 12


def test_records_that_left_the_log_are_forgotten_and_late_acknowledgements_ignored() -> None:
    share = records()
    acquire(share, max_records=20)

    assert share.log_starts_at(15)

    assert acknowledge(share, 0, 9, AcknowledgeType.ACCEPT) == []
    acknowledge(share, 10, 19, AcknowledgeType.ACCEPT)
    assert share.ranges.start == 20


def test_records_in_flight_at_the_old_leader_are_available_at_the_new() -> None:
    finished = StateBatch(10, 19, DeliveryState.ACKNOWLEDGED, 1)
    again = StateBatch(25, 29, DeliveryState.AVAILABLE, 2)

    share = load(StoredState(1, 5, (finished, again)), 5, 100, SETTINGS).records

    assert share.ranges.final_count == 10
    assert acquire(share, max_records=1) == [Acquired(5, 9, 1)]
    assert acquire(share, max_records=500)[:2] == [Acquired(20, 24, 1), Acquired(25, 29, 3)]


def test_state_of_truncated_records_does_not_apply_to_their_successors() -> None:
    finished = StateBatch(0, 29, DeliveryState.ACKNOWLEDGED, 1)

    loaded = load(StoredState(1, 0, (finished,)), 0, 20, SETTINGS)

    assert loaded.corrections == (StateBatch(20, 29, DeliveryState.AVAILABLE, 2),)
    assert loaded.records.ranges.start == loaded.records.next_fetch_offset == 20
    assert acquire(loaded.records, max_records=5) == [Acquired(20, 29, 3)]


def test_ranges_are_joined_when_many_have_gathered() -> None:
    share = records()
    acquire(share)
    for offset in range(1, 100):
        acknowledge(share, offset, offset, AcknowledgeType.ACCEPT)

    assert share.ranges.final_count == 99
    assert len(share.ranges) < 40


def test_others_are_served_while_many_records_are_acknowledged() -> None:
    share = records(dataclasses.replace(SETTINGS, max_record_locks=10_000))
    acquire(share, log=[FetchedBatch(0, 1999)], max_records=2000)
    types = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE] * 1000

    steps = share.acknowledge("m", [AcknowledgementBatch(0, 1999, types)], 0)
    for _ in range(1000):
        next(steps)
    halfway = acquire(share, log=[FetchedBatch(0, 2009)], max_records=10, member_id="n")
    share.commit(finished(steps))

    assert halfway == [Acquired(2000, 2009, 1)]
    assert share.ranges.final_count == 999


def test_acknowledgement_that_is_given_up_halfway_changes_nothing() -> None:
    share = records()
    acquire(share, max_records=10)
    types = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE] * 5

    steps = share.acknowledge("m", [AcknowledgementBatch(0, 9, types)], 0)
    next(steps)
    next(steps)
    steps.close()

    assert acknowledge(share, 0, 9, AcknowledgeType.ACCEPT) == [
        StateBatch(0, 9, DeliveryState.ACKNOWLEDGED, 1)
    ]


def test_expired_locks_are_released_a_thousand_at_a_time() -> None:
    share = records(dataclasses.replace(SETTINGS, max_record_locks=10_000))
    acquire(
        share, log=[FetchedBatch(one, one) for one in range(3000)], max_records=1500, batch_size=1
    )

    share.expire_locks(1000)

    assert share.earliest_lock_ms == 1000
    share.expire_locks(1000)
    assert share.next_fetch_offset == 0
    assert all(one.is_available for one in share.ranges)


def test_records_in_flight_cost_little() -> None:
    """A tenth of the 100,000 for which a group may take 100 MB, each in a state of its own."""
    share = records(dataclasses.replace(SETTINGS, max_record_locks=10_000))
    acquire(share, log=[FetchedBatch(0, 9999)], max_records=10_000)
    types = [AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT] * 5000
    tracemalloc.start()
    try:
        batch = AcknowledgementBatch(0, 9999, types)
        share.commit(finished(share.acknowledge("m", [batch], 0)))
        assert len(share.ranges) == 10_000
        assert tracemalloc.get_traced_memory()[0] < 4_000_000
    finally:
        tracemalloc.stop()
