"""Idempotent producers: duplicates, sequences, epochs, expiry; and open transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.records.control import ControlType
from storage.append.append_source import FROM_COORDINATOR
from storage.segment.aborted_index import AbortedTransaction
from tests.storage.produced import (
    NOW_MS,
    Producer,
    append,
    append_marker,
    batch,
    marker,
    new_log,
    reopen,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.append.append_info import AppendInfo
    from storage.log.log import Log

LAST = 2**31 - 1
DAY_MS = 86_400_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path, TopicConfig())


def send(log: Log, sequence: int, count: int = 1, epoch: int = 0) -> AppendInfo:
    return append(log, batch(count, producer=Producer(7, epoch, sequence)))


def refusal(log: Log, sequence: int, epoch: int = 0) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        send(log, sequence, epoch=epoch)
    return refused.value.code


def test_each_of_the_last_five_batches_is_answered_with_its_first_offset(log: Log) -> None:
    for sequence in range(6):
        send(log, sequence * 2, 2)

    repeats = [send(log, sequence * 2, 2) for sequence in range(1, 6)]

    assert [info.first_offset for info in repeats] == [2, 4, 6, 8, 10]
    assert [info.last_offset for info in repeats] == [3, 5, 7, 9, 11]
    assert all(info.is_duplicate for info in repeats)
    assert log.log_end_offset == 12


def test_repeat_of_another_size_is_out_of_order(log: Log) -> None:
    send(log, 0, 3)

    with pytest.raises(ApiError) as refused:
        send(log, 0, 2)

    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_gap_is_out_of_order_and_nothing_is_appended(log: Log) -> None:
    send(log, 0)

    assert refusal(log, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 1


def test_unknown_producer_may_start_anywhere(log: Log) -> None:
    assert send(log, 1234, epoch=3).first_offset == 0
    assert send(log, 1235, epoch=3).first_offset == 1


def test_sequence_wraps_to_zero_between_and_inside_batches(log: Log) -> None:
    send(log, LAST - 1, 2)
    send(log, 0)
    assert refusal(log, 2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, batch(1, producer=Producer(8, 0, LAST - 2)))
    append(log, batch(4, producer=Producer(8, 0, LAST - 1)))

    info = append(log, batch(1, producer=Producer(8, 0, 2)))
    repeat = append(log, batch(4, producer=Producer(8, 0, LAST - 1)))

    assert info.first_offset == 8
    assert (repeat.first_offset, repeat.is_duplicate) == (4, True)


def test_new_epoch_starts_at_zero_and_fences_the_old(log: Log) -> None:
    send(log, 0, 5)

    assert refusal(log, 5, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=1)
    assert refusal(log, 5, epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_same_sequences_in_a_new_epoch_are_no_duplicate(log: Log) -> None:
    send(log, 0)

    assert not send(log, 0, epoch=1).is_duplicate
    assert log.log_end_offset == 2


def test_producers_are_kept_apart(log: Log) -> None:
    send(log, 0)

    assert append(log, batch(1, producer=Producer(8, 0, 0))).first_offset == 1


def test_idle_producer_expires_by_the_time_of_its_batches(log: Log) -> None:
    send(log, 0)

    assert sum(log.producers.expire(NOW_MS + DAY_MS - 1, DAY_MS)) == 0
    assert sum(log.producers.expire(NOW_MS + DAY_MS, DAY_MS)) == 1
    assert send(log, 77).first_offset == 1


def test_producer_with_an_open_transaction_does_not_expire(log: Log) -> None:
    append(log, batch(1, producer=Producer(7, 0, 0, is_transactional=True)))

    assert sum(log.producers.expire(NOW_MS + 2 * DAY_MS, DAY_MS)) == 0


def test_last_stable_offset_is_where_the_first_open_transaction_begins(log: Log) -> None:
    one, two = Producer(1, is_transactional=True), Producer(2, is_transactional=True)
    append(log, batch(2))
    append(log, batch(2, producer=one))
    append(log, batch(2, producer=two))
    assert log.last_stable_offset == 2

    append_marker(log, marker(one, ControlType.COMMIT))
    assert log.last_stable_offset == 4
    append_marker(log, marker(two, ControlType.ABORT))

    assert log.last_stable_offset == log.high_watermark == 8
    assert log.aborted_transactions(0, 8) == [AbortedTransaction(2, 4, 7, 8)]
    assert log.aborted_transactions(0, 4) == []
    assert log.aborted_transactions(8, 9) == []


def test_last_stable_offset_waits_for_the_marker_to_be_replicated(log: Log) -> None:
    producer = Producer(1, is_transactional=True)
    log.append_as_leader(batch(2, producer=producer), 0, NOW_MS)
    log.append_as_leader(marker(producer, ControlType.COMMIT), 0, NOW_MS, FROM_COORDINATOR)
    log.advance_high_watermark(2)

    before = log.last_stable_offset
    log.advance_high_watermark(3)

    assert (before, log.last_stable_offset) == (0, 3)


def test_write_outside_an_open_transaction_is_refused(log: Log) -> None:
    append(log, batch(1, producer=Producer(7, 0, 0, is_transactional=True)))

    assert refusal(log, 1) == ErrorCode.INVALID_TXN_STATE


def test_marker_of_an_old_coordinator_or_producer_epoch_is_refused(log: Log) -> None:
    producer = Producer(7, 3, is_transactional=True)
    append(log, batch(1, producer=producer))
    append_marker(log, marker(producer, ControlType.COMMIT, coordinator_epoch=5))

    with pytest.raises(ApiError) as fenced:
        append_marker(log, marker(producer, ControlType.COMMIT, coordinator_epoch=4))
    with pytest.raises(ApiError) as old:
        append_marker(log, marker(Producer(7, 2), ControlType.ABORT, coordinator_epoch=6))

    assert fenced.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert old.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_marker_without_a_transaction_raises_the_epoch_only(log: Log) -> None:
    append_marker(log, marker(Producer(7, 4), ControlType.ABORT))

    assert log.aborted_transactions(0, 10) == []
    assert refusal(log, 0, epoch=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(log, 0, epoch=4).first_offset == 1


def test_follower_knows_the_producers_of_its_leader(tmp_path: Path, log: Log) -> None:
    follower = new_log(tmp_path / "follower", TopicConfig())
    producer = Producer(7, 0, 0, is_transactional=True)
    append(log, batch(2, producer=producer))
    append_marker(log, marker(producer, ControlType.ABORT))
    append(log, batch(2, producer=Producer(7, 0, 2)))

    follower.append_as_follower(log.read(0, 10_000, 5).tobytes(), NOW_MS)

    assert follower.producers.snapshot() == log.producers.snapshot()
    assert follower.aborted_transactions(0, 5) == log.aborted_transactions(0, 5)


@pytest.mark.parametrize("is_clean", [True, False])
def test_producer_state_survives_a_restart(tmp_path: Path, is_clean: bool) -> None:
    log = new_log(tmp_path)
    for sequence in range(40):
        append(log, batch(2, producer=Producer(7, 1, sequence * 2), value=b"x" * 40))
    open_producer = Producer(9, 0, 0, is_transactional=True)
    first_open = append(log, batch(1, producer=open_producer)).first_offset
    before = log.producers.snapshot()
    if is_clean:
        log.close()

    log, _ = reopen(tmp_path, recovery_point=log.recovery_point, high_watermark=1000)

    assert len(log.segments) > 2
    assert log.producers.snapshot() == before
    assert log.last_stable_offset == first_open
    assert send(log, 78, 2, epoch=1).is_duplicate
    assert refusal(log, 200, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 80, epoch=1).first_offset == first_open + 1


def test_ended_transactions_survive_a_crash_without_a_snapshot(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig())
    for producer_id in range(4):
        producer = Producer(producer_id, 0, 0, is_transactional=True)
        append(log, batch(1, producer=producer))
        if producer_id < 3:
            append_marker(log, marker(producer, ControlType(producer_id % 2), coordinator_epoch=6))
    before = log.producers.snapshot()

    log, _ = reopen(tmp_path, high_watermark=1000)

    assert log.producers.snapshot() == before
    assert log.last_stable_offset == 6
    assert [aborted.producer_id for aborted in log.aborted_transactions(0, 7)] == [0, 2]


def test_producer_whose_records_are_all_deleted_may_start_anew(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig())
    send(log, 0, 5)
    log.roll(NOW_MS)
    log.advance_log_start_offset(5)
    log.close()

    log, _ = reopen(tmp_path, log_start_offset=5, high_watermark=5)

    assert log.producers.producers == {}
    assert send(log, 77).first_offset == 5


def test_truncation_takes_producer_state_back(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for sequence in range(40):
        append(log, batch(1, producer=Producer(7, 0, sequence), value=b"x" * 40))

    log.truncate_to(25)

    assert log.producers.producers[7].last_sequence == 24
    assert all(offset <= 25 for offset in log.files.snapshots.offsets)
    assert append(log, batch(1, producer=Producer(7, 0, 25))).first_offset == 25


def test_producer_state_is_separate_for_each_log(tmp_path: Path) -> None:
    one, other = new_log(tmp_path / "one"), new_log(tmp_path / "other")
    append(one, batch(1, producer=Producer(7, is_transactional=True)))
    append(one, batch(1, producer=Producer(8, is_transactional=True)))
    append_marker(one, marker(Producer(8), ControlType.ABORT))
    one.producers.guards.obtain(9, 0, 0, bumps_epoch=False, now_ms=NOW_MS)

    assert sorted(one.producers.producers) == [7, 8]
    assert one.producers.has_open_transactions
    assert other.producers.producers == {}
    assert not other.producers.has_open_transactions
    assert other.producers.first_unstable_offset is None
    assert other.producers.guards._entries == {}
