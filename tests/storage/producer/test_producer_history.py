"""A producer's last five batches are known after a start, though a snapshot has only one.

A client with five requests under way repeats them all when it has lost the answers with the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from storage.producer.producer import REMEMBERED_BATCHES
from storage.producer.producer_history import MOST_HEADERS, MOST_REPEAT_HEADERS
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    append,
    batch,
    new_log,
    reopen,
    reopen_clean,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.append.append_info import AppendInfo
    from storage.log.log import Log

UNDER_WAY = range(5)


def send(log: Log, sequence: int, producer_id: int = 7, epoch: int = 0) -> AppendInfo:
    """Append a batch of two records."""
    return append(log, batch(2, producer=Producer(producer_id, epoch, sequence)))


def is_known(log: Log, sequence: int, offset: int) -> bool:
    """Return whether a repeated batch is answered as the first time, and not appended."""
    end = log.log_end_offset
    repeat = send(log, sequence)
    return repeat.is_duplicate and repeat.first_offset == offset and log.log_end_offset == end


def refused(log: Log, sequence: int, epoch: int = 0) -> bool:
    """Return whether a batch is out of order."""
    with pytest.raises(ApiError) as refusal:
        send(log, sequence, epoch=epoch)
    return refusal.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def remembered(log: Log, producer_id: int = 7) -> list[int]:
    """Return the base offsets of a producer's cached batches."""
    return [one.base_offset for one in log.producers.producers[producer_id].batches]


def test_five_batches_are_known_after_a_clean_stop(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig())
    for number in range(7):
        send(log, 2 * number)
    log.close()

    log = reopen_clean(tmp_path, TopicConfig())

    assert all(is_known(log, 2 * number, 2 * number) for number in range(2, 7))
    assert len(remembered(log)) == REMEMBERED_BATCHES
    assert not send(log, 14).is_duplicate


def test_five_batches_are_known_after_a_crash_behind_a_roll(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in range(4):
        send(log, 2 * number)
    log.roll(NOW_MS)
    send(log, 8)

    log, _ = reopen(tmp_path)

    assert all(is_known(log, 2 * number, 2 * number) for number in UNDER_WAY)


def test_five_batches_are_known_after_a_cut(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in UNDER_WAY:
        send(log, 2 * number)
    log.roll(NOW_MS)
    send(log, 10)

    log.truncate_to(10)

    assert all(is_known(log, 2 * number, 2 * number) for number in UNDER_WAY)


def test_batches_of_others_lie_between(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in UNDER_WAY:
        send(log, 2 * number)
        for other in range(100, 120):
            send(log, 2 * number, producer_id=other)
    log.close()
    assert len(log.segments) > 1

    log = reopen_clean(tmp_path)

    assert all(is_known(log, 2 * number, 42 * number) for number in UNDER_WAY)


def test_batches_of_an_earlier_epoch_are_left_alone(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    send(log, 0, epoch=0)
    send(log, 0, epoch=1)
    send(log, 2, epoch=1)
    log.close()

    log = reopen_clean(tmp_path)

    assert refused(log, 8, epoch=1)
    assert remembered(log) == [2, 4]


def test_deleted_batches_are_left_alone(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in UNDER_WAY:
        send(log, 2 * number)
    log.close()

    log = reopen_clean(tmp_path, SMALL, log_start_offset=6)

    assert refused(log, 2)
    assert remembered(log) == [6, 8]


def test_the_walk_ends_where_it_costs_too_much(tmp_path: Path) -> None:
    config = TopicConfig()
    log = new_log(tmp_path, config)
    send(log, 0)
    send(log, 2)
    for number in range(2 * MOST_HEADERS):
        send(log, 2 * number, producer_id=8)
    send(log, 4)
    log.close()

    log = reopen_clean(tmp_path, config)

    assert refused(log, 0)
    assert remembered(log) == [4 * MOST_HEADERS + 4]


def test_out_of_order_batches_cause_no_second_read(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig())
    for number in UNDER_WAY:
        send(log, 2 * number)
    log.close()
    log = reopen_clean(tmp_path, TopicConfig())
    assert refused(log, 100)
    log.segments.active.release()

    assert refused(log, 100)

    assert log.segments.active._file is None


def test_five_batches_are_known_though_many_small_segments_lie_between_them(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for number in UNDER_WAY:
        send(log, 2 * number)
        for _ in range(120):
            append(log, batch(2))
    segments = len(log.segments)
    log.close()

    again = reopen_clean(tmp_path, recovery_point=log.log_end_offset)

    assert segments > 20
    assert all(is_known(again, 2 * number, 242 * number) for number in UNDER_WAY)


def test_an_older_batch_is_known_by_the_log(tmp_path: Path) -> None:
    """A client that met the new leader first repeats later what the old one had appended."""
    log = new_log(tmp_path, TopicConfig(segment_bytes=1000))
    for number in range(20):
        send(log, 2 * number)
        send(log, 2 * number, producer_id=8)

    assert all(is_known(log, 2 * number, 4 * number) for number in range(20))
    assert len(remembered(log)) == REMEMBERED_BATCHES


def test_an_older_batch_that_does_not_stand_in_the_log_is_out_of_order(tmp_path: Path) -> None:
    """Later batches prove nothing: a producer's first sequence number may be any."""
    log = new_log(tmp_path, TopicConfig())
    for number in range(10, 20):
        send(log, 2 * number)
    assert refused(log, 18)
    assert refused(log, 21)  # it overlaps two that are there
    assert refused(log, 42)
    log.advance_high_watermark(log.log_end_offset)
    log.advance_log_start_offset(4)
    assert refused(log, 20)
    assert is_known(log, 24, 4)


def test_an_older_batch_is_looked_for_so_far_and_no_farther(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig())
    for number in range(5 * MOST_REPEAT_HEADERS):
        send(log, 2 * number)
    near = 9 * MOST_REPEAT_HEADERS
    assert is_known(log, near, near)
    assert refused(log, 0)
