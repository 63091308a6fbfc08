"""Closed segments that are damaged, cut short or gone when a log is loaded by looking at its files.

What is left is served, and the segments behind it; one line says which offsets are missing.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from typing import TYPE_CHECKING

import pytest

from storage.log.log_loader import LoadHints, load_log
from storage.log.log_settings import LogSettings
from tests.storage.produced import SMALL, all_offsets, append, batch, new_log, place, reopen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from storage.log.log import Log

END = 300
COMPACTED = dataclasses.replace(SMALL, cleanup_policy=frozenset({"compact"}))


@pytest.fixture
def bases(tmp_path: Path) -> list[int]:
    """Return the base offsets of the segments of a closed log of 300 records."""
    log = new_log(tmp_path)
    for _ in range(END // 5):
        append(log, batch(5))
    log.close()
    assert len(log.segments) > 4
    return list(log.segments.base_offsets)


def segment_path(directory: Path, base_offset: int, suffix: str = ".log") -> Path:
    return directory / "flights-0" / f"{base_offset:020d}{suffix}"


def loaded(directory: Path, is_clean: bool, hints: LoadHints | None = None) -> Log:
    """The log after a clean stop, or after a kill long after all was flushed."""
    found = hints or LoadHints(is_clean, recovery_point=END)
    return load_log(place(directory), SMALL, LogSettings(), found)[0]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]


def last_batch_is_cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 70)


def last_batch_is_gone(path: Path) -> None:
    os.truncate(path, path.stat().st_size - len(batch(5)))


def all_is_gone(path: Path) -> None:
    os.truncate(path, 0)


def last_batches_are_zeros(path: Path) -> None:
    size = path.stat().st_size
    os.truncate(path, size - 2 * len(batch(5)))
    os.truncate(path, size)


DAMAGES: dict[Callable[[Path], None], int] = {
    last_batch_is_cut: 5,
    last_batch_is_gone: 5,
    last_batches_are_zeros: 10,
}
"""Number of records that each loses."""


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("damage", [*DAMAGES, all_is_gone])
def test_the_rest_of_a_damaged_closed_segment_is_served_and_the_loss_logged_once(
    tmp_path: Path,
    bases: Sequence[int],
    damage: Callable[[Path], None],
    is_clean: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = segment_path(tmp_path, bases[1])
    damage(path)

    log = loaded(tmp_path, is_clean)

    first = bases[2] - DAMAGES[damage] if damage in DAMAGES else bases[1]
    missing = range(first, bases[2])
    assert all_offsets(log) == [offset for offset in range(END) if offset not in missing]
    for offset in missing:
        assert log.read(offset, 10_000, END).first_offset == bases[2]
    (told,) = errors(caplog)
    assert str(path) in told
    assert f"offsets {first} to {bases[2] - 1} are missing" in told


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("suffixes", [[".log"], [".log", ".index", ".timeindex", ".snapshot"]])
def test_a_segment_that_is_gone_from_the_middle_is_an_error(
    tmp_path: Path,
    bases: Sequence[int],
    suffixes: Sequence[str],
    is_clean: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for suffix in suffixes:
        segment_path(tmp_path, bases[1], suffix).unlink(missing_ok=True)

    log = loaded(tmp_path, is_clean)

    missing = range(bases[1], bases[2])
    assert all_offsets(log) == [offset for offset in range(END) if offset not in missing]
    path = segment_path(tmp_path, bases[0])
    assert errors(caplog) == [
        (
            f"flights-0: {path} ends at offset {bases[1]}, and the next "
            f"segment begins at {bases[2]}: offsets {bases[1]} to {bases[2] - 1} are missing"
        )
    ]


def test_a_segment_that_is_gone_from_what_recovery_reads_is_an_error(
    tmp_path: Path, bases: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    segment_path(tmp_path, bases[1]).unlink()

    log = loaded(tmp_path, is_clean=False, hints=LoadHints(was_clean=False))

    assert log.log_end_offset == END
    (told,) = errors(caplog)
    assert told.endswith(f"offsets {bases[1]} to {bases[2] - 1} are missing")


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_segments_before_the_log_start_offset_are_not_missed(
    tmp_path: Path, bases: Sequence[int], is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    segment_path(tmp_path, bases[1]).unlink()

    loaded(tmp_path, is_clean, LoadHints(is_clean, END, log_start_offset=bases[2]))

    assert errors(caplog) == []


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_a_gap_that_compaction_may_have_left_is_no_error(
    tmp_path: Path, bases: Sequence[int], is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    segment_path(tmp_path, bases[1]).unlink()

    hints = LoadHints(is_clean, recovery_point=END)
    load_log(place(tmp_path), COMPACTED, LogSettings(), hints)
    loaded(tmp_path, is_clean, LoadHints(is_clean, END, cleaned_offset=bases[3]))

    assert errors(caplog) == []


def test_closed_segments_in_order_leave_nothing_open_and_say_nothing(
    tmp_path: Path, bases: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    log = loaded(tmp_path, is_clean=True)

    assert errors(caplog) == []
    assert all(segment._file is None for segment in log.segments if segment.base_offset < bases[-1])


def test_a_log_that_ends_before_its_high_watermark_after_a_kill_is_an_error(
    tmp_path: Path, bases: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    path = segment_path(tmp_path, bases[-1])
    os.truncate(path, 0)

    log, _ = reopen(tmp_path, recovery_point=bases[-1], high_watermark=END)

    assert log.log_end_offset == bases[-1]
    assert errors(caplog) == [
        (
            f"flights-0: {path} ends at offset {bases[-1]}, before its high watermark {END}: "
            f"offsets {bases[-1]} to {END - 1} are missing"
        )
    ]
