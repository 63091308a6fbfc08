"""The part of a log that may be cleaned, and whether cleaning is worth it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from protocol.records.control import ControlType
from storage.compaction.choice import assess, make_job
from storage.producer.producer import ProducedBatch
from tests.storage.compaction.compacting import LIMITS, SEED, compact, keyed, put, records_in
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    append,
    append_marker,
    marker,
    new_log,
    reopen,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log
    from storage.producer.producer import Producer as StoredProducer

CONFIG = dataclasses.replace(SMALL, cleanup_policy=frozenset({"compact"}))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Three segments with a record each, and an empty active one."""
    log = new_log(tmp_path, CONFIG)
    for index in range(3):
        append(log, keyed([(b"a", b"%d" % index)], NOW_MS + 1000 * index))
        log.roll(NOW_MS)
    return log


def end_of_cleanable(log: Log, now_ms: int = NOW_MS) -> int | None:
    found = assess(log, now_ms)
    return found.end_offset if found else None


def test_the_active_segment_is_never_cleaned(log: Log) -> None:
    put(log, a="newest")

    assert end_of_cleanable(log) == 3
    assert log.log_end_offset == 4


def test_a_log_without_compaction_or_with_one_segment_is_skipped(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    put(log, a="1")
    assert assess(log, NOW_MS) is None

    log.roll(NOW_MS)
    assert end_of_cleanable(log) == 1
    log.config = SMALL
    assert assess(log, NOW_MS) is None


def test_records_above_the_last_stable_offset_are_not_cleaned(log: Log) -> None:
    producer = Producer(7, 0, 0, is_transactional=True)
    append(log, keyed([(b"b", b"1")], producer=producer))
    log.roll(NOW_MS)
    put(log, a="newest")
    log.roll(NOW_MS)
    assert end_of_cleanable(log) == 3

    append_marker(log, marker(producer, ControlType.COMMIT))

    assert end_of_cleanable(log) == 5


def test_records_above_the_high_watermark_are_not_cleaned(log: Log) -> None:
    log.offsets.high_watermark = 1

    assert end_of_cleanable(log) == 1


def test_segments_with_records_younger_than_min_compaction_lag_are_not_cleaned(log: Log) -> None:
    log.config = dataclasses.replace(CONFIG, min_compaction_lag_ms=500)

    assert [end_of_cleanable(log, NOW_MS + now) for now in (0, 499, 501, 1501, 2501)] == [
        *(0, 0, 1, 2, 3)
    ]


def test_the_dirty_ratio_is_dirty_bytes_over_cleanable_bytes(log: Log) -> None:
    found = assess(log, NOW_MS)
    assert found is not None
    assert (found.ratio, found.is_worth_it) == (1.0, True)

    compact(log)
    clean = assess(log, NOW_MS)
    assert clean is not None
    assert (clean.ratio, clean.is_worth_it) == (0.0, False)

    put(log, b="x" * 20)
    log.roll(NOW_MS)
    little = assess(log, NOW_MS)
    assert little is not None
    assert little.first_dirty_offset == 3
    assert little.clean_bytes == sum(one.size for one in list(log.segments)[:-2])
    assert 0 < little.ratio < 1


def test_a_ratio_that_is_not_reached_is_overruled_by_the_greatest_lag(log: Log) -> None:
    log.config = dataclasses.replace(
        CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000
    )

    worth = [assess(log, NOW_MS + now) for now in (5000, 5001)]

    assert [found.is_worth_it for found in worth if found] == [False, True]


def test_the_greatest_lag_makes_the_active_segment_roll(tmp_path: Path) -> None:
    log = new_log(tmp_path, dataclasses.replace(CONFIG, max_compaction_lag_ms=5000))
    append(log, keyed([(b"a", b"1")], NOW_MS))
    append(log, keyed([(b"a", b"2")], NOW_MS + 5000))
    assert len(log.segments) == 1

    append(log, keyed([(b"a", b"3")], NOW_MS + 5001))

    assert log.segments.base_offsets == [0, 2]


@pytest.mark.parametrize("cleaned_offset", [-1, 1, 99])
def test_a_checkpoint_outside_of_the_log_counts_as_none(log: Log, cleaned_offset: int) -> None:
    log.advance_log_start_offset(2)
    log.offsets.cleaned_offset = cleaned_offset

    found = assess(log, NOW_MS)

    assert found is not None
    assert found.first_dirty_offset == 2


def test_truncation_makes_later_records_dirty_again(log: Log, tmp_path: Path) -> None:
    compact(log)
    assert log.cleaned_offset == 3

    log.truncate_to(1)
    put(log, a="other")
    log.roll(NOW_MS)

    found = assess(log, NOW_MS)
    assert found is not None
    assert (found.first_dirty_offset, found.end_offset) == (1, 2)
    again, _ = reopen(tmp_path, CONFIG, cleaned_offset=99, high_watermark=2)
    assert again.cleaned_offset == 2


def test_too_many_keys_are_cleaned_in_several_goes(tmp_path: Path) -> None:
    from tests.storage.compaction.compacting import LIMITS

    log = new_log(tmp_path, CONFIG)
    for index in range(40):
        put(log, **{f"k{index % 20}": str(index)})
    log.roll(NOW_MS)
    limits = dataclasses.replace(LIMITS, memory_bytes=24 * 8, load_factor=1.0)
    ends = []
    while (done := compact(log, NOW_MS, limits)) is not None:
        ends.append(done.end_offset)

    assert ends == [8, 16, 24, 32, 40]
    assert [offset for offset, _, _ in records_in(log)] == list(range(20, 40))


class Outdated(list[ProducedBatch]):
    """Batches of a producer that begins a new epoch as soon as they were read."""

    producer: StoredProducer

    def __len__(self) -> int:
        self.producer.begin_epoch(self.producer.epoch + 1)
        return super().__len__()


@pytest.mark.interpreted
def test_a_producer_may_begin_an_epoch_while_a_thread_makes_the_job(log: Log) -> None:
    """The producer's last batch lies in the active segment, so either answer will do."""
    append(log, keyed([(b"a", b"1")], producer=Producer(7, 0, 0)))
    log.roll(NOW_MS)
    chosen = assess(log, NOW_MS)
    assert chosen is not None
    stored = log.producers.producers[7]
    outdated = Outdated(stored.batches)
    outdated.producer = stored
    stored.batches = outdated

    job = make_job(chosen, LIMITS, NOW_MS, SEED)

    assert stored.batches == []
    assert job.producers[7].last_offset in {3, -1}
