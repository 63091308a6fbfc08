"""Logs that are reset when they are loaded: their log lines, and their age."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.storage.produced import all_offsets, append, batch, new_log, reopen

if TYPE_CHECKING:
    from storage.log.log import Log

NO_TIMESTAMP = -1
BEYOND = 500


def begun_anew(directory: Path, *, is_empty: bool) -> Log:
    """A log that the loader has made a segment for, of an empty directory or of too short a log."""
    log = new_log(directory)
    if is_empty:
        for path in (directory / "flights-0").glob(f"{0:020d}.*"):
            path.unlink()
    else:
        append(log, batch(2))
    return reopen(directory, log_start_offset=BEYOND)[0]


def changed_ms(log: Log) -> int:
    """Return the modification time of the active segment's file."""
    return Path(log.segments.active.path).stat().st_mtime_ns // 1_000_000


def test_the_segments_of_a_log_that_is_emptied_go_for_its_start_and_not_for_a_cut(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    for _ in range(40):
        append(log, batch(2, value=b"x" * 30))
    assert len(log.segments) > 1

    _, outcome = reopen(tmp_path, log_start_offset=BEYOND)

    emptied, *removed = outcome.notes
    assert emptied.endswith(f"ends at 80, before its log start offset {BEYOND}: emptied")
    assert len(removed) == len(log.segments)
    for note in removed:
        assert f"bytes lies before the log start offset {BEYOND}: removed, from offset " in note


def test_segments_behind_a_cut_are_removed_with_a_line_of_their_bytes_and_offsets(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    for _ in range(60):
        append(log, batch(5))
    log.close()
    bases = log.segments.base_offsets
    paths = [Path(segment.path) for segment in log.segments]
    sizes = [path.stat().st_size for path in paths]
    os.truncate(paths[-3], sizes[-3] - 30)

    again, outcome = reopen(tmp_path)

    assert again.log_end_offset == bases[-2] - 5
    offsets = [f"{bases[-2]} to {bases[-1] - 1}", f"{bases[-1]} on"]
    assert outcome.notes[1:] == [
        f"flights-0: {path} with {size} bytes follows the cut: removed, from offset {gone}"
        for path, size, gone in zip(paths[-2:], sizes[-2:], offsets, strict=True)
    ]
    assert outcome.bytes_removed == sum(sizes[-2:])


@pytest.mark.parametrize("is_empty", [True, False], ids=["no segment", "too short"])
def test_a_segment_that_the_loader_makes_begins_when_its_file_does(
    tmp_path: Path, is_empty: bool
) -> None:
    log = begun_anew(tmp_path, is_empty=is_empty)

    assert log.segments.active.created_ms == changed_ms(log)


@pytest.mark.parametrize("is_empty", [True, False], ids=["no segment", "too short"])
def test_records_without_timestamps_stay_in_a_log_that_begins_anew(
    tmp_path: Path, is_empty: bool
) -> None:
    log = begun_anew(tmp_path, is_empty=is_empty)

    now_ms = changed_ms(log) + 1
    for _ in range(3):
        log.append_as_leader(batch(1, NO_TIMESTAMP), 0, now_ms)
    log.advance_high_watermark(log.log_end_offset)

    assert len(log.segments) == 1
    log.roll(now_ms)
    assert log.delete_expired(now_ms) == []
    assert log.log_start_offset == BEYOND


@pytest.mark.parametrize("left", [b"", bytes(4096), b"\x00\x00\x00\x07\x00\x00\x10\x00" * 512])
def test_indexes_of_an_empty_log_count_for_nothing_after_a_crash(
    tmp_path: Path, left: bytes
) -> None:
    log = new_log(tmp_path)
    index = Path(log.path) / "00000000000000000000.index"
    log.release()
    index.write_bytes(left)

    log, _ = reopen(tmp_path)

    assert index.stat().st_size == 0
    for _ in range(40):
        append(log, batch(5))
    assert all_offsets(log) == list(range(200))


def test_an_empty_log_without_indexes_gets_them_after_a_crash(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.release()
    for name in (".index", ".timeindex"):
        (Path(log.path) / f"00000000000000000000{name}").unlink()

    log, outcome = reopen(tmp_path)

    assert outcome.notes == []
    append(log, batch(5))
    log.close()
    assert (Path(log.path) / "00000000000000000000.timeindex").stat().st_size == 12
