"""The state of a log after a truncation, or after a fresh start at another offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.producer.producer_state import ProducerState
from tests.storage.produced import (
    NOW_MS,
    Producer,
    all_offsets,
    append,
    batch,
    new_log,
    reopen_clean,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Twenty records of producer 7 in batches of two, ten in each of two epochs, all flushed."""
    log = new_log(tmp_path)
    for index in range(10):
        producer = Producer(7, sequence=2 * index)
        append(log, batch(2, producer=producer), epoch=index // 5)
    log.flush()
    return log


def test_cut_takes_along_batches_epochs_and_producers(log: Log, tmp_path: Path) -> None:
    truncations = log.offsets.truncations

    assert log.truncate_to(8)

    assert all_offsets(log) == list(range(8))
    assert log.epochs.entries() == [(0, 0)]
    assert log.producers.producers[7].last_sequence == 7
    assert (log.recovery_point, log.high_watermark, log.log_end_offset) == (8, 8, 8)
    assert log.offsets.truncations == truncations + 1
    log.close()
    assert all_offsets(reopen_clean(tmp_path)) == list(range(8))


def test_cut_in_the_middle_of_a_batch_takes_the_batch_and_keeps_the_offset(log: Log) -> None:
    log.truncate_to(9)

    assert all_offsets(log) == list(range(8))
    assert log.log_end_offset == 9
    assert append(log, batch(1), epoch=2).first_offset == 9


def test_nothing_is_cut_at_the_end_but_an_epoch_without_records(log: Log) -> None:
    log.assign_epoch(5, 20)

    assert not log.truncate_to(20)

    assert log.epochs.entries() == [(0, 0), (1, 10)]
    assert (log.log_end_offset, log.offsets.truncations) == (20, 0)


def test_truncation_below_the_recovery_point_notifies_the_directory(log: Log) -> None:
    cuts: list[int] = []
    log.directory.on_cut = lambda: cuts.append(log.recovery_point)
    append(log, batch(2), epoch=1)

    log.truncate_to(20)
    log.truncate_to(6)

    assert cuts == [6], "only what had been flushed"


def test_cut_before_the_first_segment_empties_the_log(log: Log) -> None:
    log.delete_expired(NOW_MS + 10**12)
    assert log.log_start_offset == 20

    assert log.truncate_to(3)

    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (3, 3, 3)
    assert append(log, batch(1)).first_offset == 3


def test_log_starts_over_where_its_leader_begins(log: Log, tmp_path: Path) -> None:
    log.truncate_fully_and_start_at(100)

    assert all_offsets(log) == []
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert (log.epochs.entries(), log.producers.producers) == ([], {})
    assert sorted(path.name[:20] for path in (tmp_path / "flights-0").glob("*.log")) == [
        f"{100:020d}"
    ]


def test_producer_state_ahead_of_the_log_is_an_assertion_error(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = ProducerState()
    ahead.restore(log.producers.snapshot())
    monkeypatch.setattr("storage.log.truncation.read_producers", lambda *_: ahead)

    with pytest.raises(AssertionError):
        log.truncate_to(8)
