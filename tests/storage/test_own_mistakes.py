"""State that only a mistake of ours can cause is an assertion error, not corruption.

Those of `LogOffsets`, of a truncation and of a flush stand with their tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from config.topic import TopicConfig
from storage.compaction.columns.offset_map import OffsetMap
from storage.segment.aborted_index import AbortedTransaction
from storage.segment.segment import Segment
from tests.storage.compaction.hashing import hashes_of
from tests.storage.produced import (
    NOW_MS,
    TOPIC_ID,
    Producer,
    append,
    batch,
    new_log,
    open_directories,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log
    from storage.segment.batch_scan import BatchPlace


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Sixty records in several segments."""
    log = new_log(tmp_path)
    for index in range(30):
        append(log, batch(2, NOW_MS + index, value=bytes(100)))
    assert len(log.segments) > 2
    return log


def size_on_disk(log: Log) -> int:
    return log.segments.active.file.size()


def test_leader_appends_nothing_before_the_active_segment(log: Log) -> None:
    size = size_on_disk(log)
    log.offsets.log_end_offset = log.segments.active.base_offset - 1

    with pytest.raises(AssertionError):
        append(log, batch(1))

    assert size_on_disk(log) == size


def test_follower_takes_in_no_offset_twice(log: Log) -> None:
    pending = log.begin_append_as_follower(bytes(batch(1, offset=60)), NOW_MS)
    assert pending is not None
    log.offsets.log_end_offset = 61

    with pytest.raises(AssertionError):
        log.finish_append_as_follower(pending)


def test_no_segment_begins_within_another(log: Log) -> None:
    with pytest.raises(AssertionError):
        log.roll(NOW_MS, base_offset=log.log_end_offset - 1)
    with pytest.raises(AssertionError):
        log.segments.add(log.segments[0])


def test_log_keeps_a_segment_whatever_is_taken(log: Log) -> None:
    with pytest.raises(AssertionError):
        log.segments.take_first(len(log.segments))


def test_last_stable_offset_is_not_before_the_log_start(log: Log) -> None:
    append(log, batch(1, producer=Producer(7, is_transactional=True)))
    assert log.last_stable_offset == 60
    log.offsets.high_watermark = 5
    log.offsets.log_start_offset = 6

    with pytest.raises(AssertionError):
        _ = log.last_stable_offset


def test_last_batch_is_not_looked_for_past_the_end_of_its_file(log: Log) -> None:
    log.segments.active.size = log.segments.active._tail_position

    with pytest.raises(AssertionError):
        log.read(59, 1000, 60)


class Misled(Segment):
    """Segment that always finds its first batch."""

    __slots__ = ()

    def locate(self, offset: int) -> BatchPlace | None:
        return super().locate(min(offset, self.base_offset))


@pytest.mark.interpreted
def test_batch_that_is_read_holds_the_offset_that_was_looked_for(log: Log) -> None:
    log.segments.active.__class__ = Misled

    with pytest.raises(AssertionError):
        log.read(59, 1000, 60)


def test_index_leads_nowhere_past_the_end_of_its_segment(log: Log) -> None:
    active = log.segments.active
    active.offset_index.append(log.log_end_offset, active.size)

    with pytest.raises(AssertionError):
        log.flush()
    with pytest.raises(AssertionError):
        log.close()


def test_cut_makes_no_file_longer(log: Log) -> None:
    active = log.segments.active
    cut = active.prepare_truncation(log.log_end_offset - 1)
    active.size = 0

    with pytest.raises(AssertionError):
        cut()


def test_index_is_cut_to_no_more_than_it_has(log: Log) -> None:
    index = log.segments.active.offset_index
    cut = index._prepare_truncation(len(index) + 1)

    with pytest.raises(AssertionError):
        cut()


def test_aborted_transaction_ends_in_the_segment_that_notes_it(log: Log) -> None:
    active = log.segments.active
    ended_before = AbortedTransaction(7, 0, active.base_offset - 1, 0)

    with pytest.raises(AssertionError):
        active.aborted_index.append(ended_before)


def test_no_leader_epoch_begins_past_the_end(log: Log) -> None:
    log.epochs.assign(3, 1000)

    with pytest.raises(AssertionError):
        log.end_offset_for_epoch(0)


def test_snapshots_of_producers_are_taken_in_the_order_of_the_log(log: Log) -> None:
    with pytest.raises(AssertionError):
        log.files.snapshots.write(log.files.snapshots.offsets[-1] - 1, [])


def test_directory_gives_up_no_log_that_it_never_had(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    directories.load(lambda _: TopicConfig())
    directories.create("flights", 0, TOPIC_ID, TopicConfig())
    directories._counts.clear()

    with pytest.raises(AssertionError):
        directories.delete("flights", 0)
    directories.close()


def test_map_of_keys_takes_no_more_than_its_capacity() -> None:
    offsets = OffsetMap(1, 2, (0, 10))

    with pytest.raises(AssertionError):
        offsets.note(hashes_of([b"one", b"two"]), np.array([1, 2]))
