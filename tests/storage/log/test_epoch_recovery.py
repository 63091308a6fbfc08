"""Leader epochs after a crash: those that the batches contradict are rebuilt from these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.storage.produced import Producer, append, batch, reopen
from tests.storage.segment.test_recovery import HINTS, fill

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("recovery_point", [0, 80])
def test_epochs_are_those_of_batches_that_a_power_failure_brings_back(
    tmp_path: Path, recovery_point: int
) -> None:
    log = fill(tmp_path)
    entries = log.epochs.entries()
    segment = log.segments.active
    before = segment.file.read_at(0, segment.size)
    log.truncate_to(segment.base_offset + 2)
    append(log, batch(2, producer=Producer(9, 0, 0)), epoch=9)
    log.segments.active.file.truncate(0)
    log.segments.active.file.write_at(0, before)

    again, outcome = reopen(tmp_path, recovery_point=recovery_point, **HINTS)

    assert again.log_end_offset == 80
    assert again.epochs.entries() == entries
    assert any("leader epochs were" in note for note in outcome.notes)


def test_epochs_are_noted_that_the_file_lacks_before_the_recovery_point(tmp_path: Path) -> None:
    log = fill(tmp_path)
    entries = log.epochs.entries()
    log.epochs.truncate_from_end(entries[1][1])

    again, _ = reopen(tmp_path, recovery_point=80, **HINTS)

    assert again.epochs.entries() == entries


def test_epoch_whose_beginning_was_deleted_contradicts_nothing(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.advance_log_start_offset(63)
    assert log.epochs.entries() == [(2, 63)], "in the middle of a batch"

    again, outcome = reopen(tmp_path, recovery_point=80, log_start_offset=63, **HINTS)

    assert again.epochs.entries() == [(2, 63)]
    assert outcome.notes == []


@pytest.mark.parametrize("start_offset", [79, 80], ids=["within the last batch", "at the end"])
def test_epoch_of_a_log_that_was_deleted_up_to_its_end_contradicts_nothing(
    tmp_path: Path, start_offset: int
) -> None:
    log = fill(tmp_path)
    log.advance_log_start_offset(start_offset)
    assert log.epochs.entries() == [(2, start_offset)]

    again, outcome = reopen(tmp_path, recovery_point=80, log_start_offset=start_offset, **HINTS)

    assert again.epochs.entries() == [(2, start_offset)]
    assert outcome.notes == []


def test_epoch_that_began_behind_all_deleted_records_contradicts_nothing(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.advance_log_start_offset(80)
    log.epochs.assign(7, 80)

    again, outcome = reopen(tmp_path, recovery_point=80, log_start_offset=80, **HINTS)

    assert again.epochs.latest == 7
    assert outcome.notes == []
