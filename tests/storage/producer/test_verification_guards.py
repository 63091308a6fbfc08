"""A transaction begins with the guard that its coordinator's answer was for, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from protocol.records.control import ControlType
from storage.append.append_source import FROM_CLIENT, FROM_COORDINATOR
from storage.log.log_loader import create_log
from storage.log.log_settings import LogSettings
from storage.producer.verification_guards import VerificationGuard
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    append_marker,
    batch,
    marker,
    place,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

PRODUCER = Producer(7, epoch=1, sequence=0, is_transactional=True)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return create_log(place(tmp_path), SMALL, LogSettings(verifies_transactions=True), NOW_MS)


def obtain(
    log: Log, *, bumps_epoch: bool = False, producer: Producer = PRODUCER
) -> VerificationGuard:
    return log.producers.guards.obtain(
        producer.producer_id,
        producer.epoch,
        producer.sequence,
        bumps_epoch=bumps_epoch,
        now_ms=NOW_MS,
    )


def append(log: Log, guard: VerificationGuard | None, producer: Producer = PRODUCER) -> int:
    source = FROM_CLIENT._replace(guard=guard)
    return log.append_as_leader(batch(2, producer=producer), 0, NOW_MS, source).first_offset


def refusal(log: Log, guard: VerificationGuard | None, producer: Producer = PRODUCER) -> ErrorCode:
    end_offset = log.log_end_offset
    with pytest.raises(ApiError) as refused:
        append(log, guard, producer)
    assert log.log_end_offset == end_offset
    return refused.value.code


def test_only_the_producers_own_guard_begins_a_transaction(log: Log) -> None:
    guard = obtain(log)
    others = obtain(log, producer=replace(PRODUCER, producer_id=8))

    assert refusal(log, None) is ErrorCode.INVALID_TXN_STATE
    assert refusal(log, others) is ErrorCode.INVALID_TXN_STATE
    assert refusal(log, VerificationGuard()) is ErrorCode.INVALID_TXN_STATE
    assert append(log, guard) == 0


def test_batches_after_the_first_need_no_guard(log: Log) -> None:
    append(log, obtain(log))

    assert append(log, None, replace(PRODUCER, sequence=2)) == 2


def test_a_marker_makes_the_guard_of_before_it_void(log: Log) -> None:
    guard = obtain(log)
    append_marker(log, marker(PRODUCER, ControlType.ABORT))

    assert refusal(log, guard) is ErrorCode.INVALID_TXN_STATE
    assert append(log, obtain(log)) == 1


def test_a_guard_for_the_next_epoch_outlives_the_marker_that_raises_it(log: Log) -> None:
    following = replace(PRODUCER, epoch=2)
    guard = obtain(log, bumps_epoch=True, producer=following)
    append_marker(log, marker(following, ControlType.COMMIT))

    assert append(log, guard, following) == 1


def test_batches_that_wait_for_one_answer_begin_with_the_lowest_sequence(log: Log) -> None:
    later = replace(PRODUCER, sequence=2)
    guard = obtain(log, producer=later)
    assert obtain(log) is guard, "one question for both"

    assert refusal(log, guard, later) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, guard) == 0
    assert append(log, guard, later) == 2


def test_a_question_that_is_never_answered_is_forgotten(log: Log) -> None:
    guard = obtain(log)
    assert list(log.producers.expire(NOW_MS + 99, 100)) == [0]
    assert obtain(log) is guard
    assert list(log.producers.expire(NOW_MS + 100, 100)) == [0]

    assert refusal(log, guard) is ErrorCode.INVALID_TXN_STATE


def test_a_log_that_does_not_verify_asks_for_no_guard(tmp_path: Path) -> None:
    log = create_log(place(tmp_path), SMALL, LogSettings(), NOW_MS)

    assert append(log, None) == 0


def test_markers_of_version_2_must_raise_the_epoch_of_an_open_transaction(log: Log) -> None:
    append(log, obtain(log))
    source = FROM_COORDINATOR._replace(transaction_version=2)

    with pytest.raises(ApiError) as refused:
        log.append_as_leader(marker(PRODUCER, ControlType.COMMIT), 0, NOW_MS, source)

    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    raised = marker(replace(PRODUCER, epoch=2), ControlType.COMMIT)
    assert log.append_as_leader(raised, 0, NOW_MS, source).first_offset == 2
