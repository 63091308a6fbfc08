"""New segments in the place of old ones: what readers, retention and the next start see."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage.compaction.choice import assess, make_job
from storage.compaction.job import CleanedGroup
from storage.compaction.log_rewrite import clean
from storage.compaction.swap import LogUnderCleaning, discard_cleaned
from storage.filesystem import LocalFileSystem
from tests.storage.compaction.compacting import LIMITS, SEED, compact, put, records_in
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    new_log,
    offsets_in,
    open_directories,
    reopen_clean,
)

if TYPE_CHECKING:
    from storage.log.log import Log

CONFIG = dataclasses.replace(SMALL, cleanup_policy=frozenset({"compact"}))
LONG_AGO_MS = NOW_MS - 86_400_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Three segments with the same keys, and an empty active one."""
    log = new_log(tmp_path, CONFIG)
    for index in range(3):
        put(log, a=str(index), b=str(index))
        log.roll(NOW_MS)
    return log


def first_group(log: Log) -> tuple[LogUnderCleaning, CleanedGroup]:
    """A cleaning that has written its only new segment, and waits for that to be put in place."""
    chosen = assess(log, NOW_MS)
    assert chosen is not None
    target = LogUnderCleaning(log)
    group = next(
        iter(clean(make_job(chosen, LIMITS, NOW_MS, SEED), LocalFileSystem(), lambda _count: None))
    )
    assert isinstance(group, CleanedGroup)
    assert group.sources == (0, 2, 4)
    return target, group


def names(log: Log) -> list[str]:
    return sorted(path.name for path in Path(log.path).iterdir())


def test_one_segment_takes_the_place_of_several(log: Log, tmp_path: Path) -> None:
    target, group = first_group(log)

    removals = target.swap_in(group)

    assert removals is not None
    assert [segment.base_offset for segment in log.segments] == [0, 6]
    assert records_in(log) == [(4, b"a", b"2"), (5, b"b", b"2")]
    assert all(path.endswith(".deleted") and Path(path).exists() for path in removals)
    assert [name for name in names(log) if name.endswith(".snapshot")] == [f"{6:020d}.snapshot"]
    log.close()
    again = reopen_clean(tmp_path, CONFIG, high_watermark=6)
    assert records_in(again) == records_in(log)
    assert (again.log_start_offset, again.log_end_offset) == (0, 6)


def test_replay_continues_in_the_segment_swapped_in(log: Log) -> None:
    target, group = first_group(log)
    put(log, c="3")
    replay = log.read_batches(0, log.log_end_offset)
    first = bytes(next(replay))

    removals = target.swap_in(group)
    assert removals is not None
    for path in removals:
        Path(path).unlink()
    rest = [bytes(data) for data in replay]

    assert [offsets_in(data) for data in (first, *rest)] == [[0, 1], [4, 5], [6]]


def test_replay_continues_after_segments_deleted_by_retention(log: Log) -> None:
    replay = log.read_batches(0, log.log_end_offset)
    first = bytes(next(replay))

    log.advance_log_start_offset(4)
    removals = log.delete_expired(NOW_MS)
    for path in removals:
        Path(path).unlink()
    rest = [bytes(data) for data in replay]

    assert removals
    assert [offsets_in(data) for data in (first, *rest)] == [[0, 1], [4, 5]]


def test_a_read_of_a_replaced_segment_completes(log: Log) -> None:
    region = log.read(0, 1000, log.log_end_offset)

    compact(log)

    assert offsets_in(region.tobytes()) == [0, 1]


def test_the_new_segment_is_as_old_as_the_newest_it_replaces(tmp_path: Path, log: Log) -> None:
    log.close()
    paths = sorted(Path(log.path).glob("*.log"))
    for index, path in enumerate(paths):
        os.utime(path, (0, (LONG_AGO_MS + index) / 1000))
    log = reopen_clean(tmp_path, CONFIG, high_watermark=6)

    compact(log)

    assert log.segments[0].created_ms == LONG_AGO_MS + 2
    modified_ms = Path(log.segments[0].path).stat().st_mtime_ns // 1_000_000
    assert modified_ms == LONG_AGO_MS + 2


def test_a_log_truncated_during_a_compaction_is_not_swapped(log: Log) -> None:
    target, group = first_group(log)
    log.truncate_to(4)

    assert not target.is_as_it_was()
    assert target.swap_in(group) is None

    assert records_in(log)[0] == (0, b"a", b"0")
    discard_cleaned(log)
    assert not [name for name in names(log) if "cleaned" in name or "swap" in name]


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_segment_of_which_a_file_is_missing_replaces_nothing(log: Log, suffix: str) -> None:
    target, group = first_group(log)
    before = records_in(log)
    Path(log.path, f"{0:020d}{suffix}.cleaned").unlink()
    found = names(log)

    with pytest.raises(FileNotFoundError, match=f"{suffix}.cleaned"):
        target.swap_in(group)

    assert names(log) == found
    assert (log.segments.base_offsets, records_in(log)) == ([0, 2, 4, 6], before)
    assert log.directory.failure is None


def test_a_transaction_index_of_an_earlier_cleaning_is_not_put_in_place(log: Log) -> None:
    Path(log.path, f"{0:020d}.txnindex.cleaned").write_bytes(bytes(34))
    target, group = first_group(log)

    assert target.swap_in(group) is not None

    assert not [name for name in names(log) if name.endswith(".txnindex")]
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_segments_that_retention_gave_up_meanwhile_do_not_come_back(log: Log) -> None:
    target, group = first_group(log)
    log.advance_log_start_offset(2)
    assert log.delete_expired(NOW_MS)

    assert target.swap_in(group) is None

    assert log.segments.base_offsets == [2, 4, 6]


def test_retention_waits_for_the_end_of_a_cleaning(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    directories.load(lambda _topic: CONFIG)
    log = directories.create("flights", 0, TOPIC_ID, CONFIG)
    for _ in range(3):
        put(log, a="1")
        log.roll(NOW_MS)
    log.advance_log_start_offset(2)

    log.is_being_cleaned = True
    assert sum(directories.delete_expired(NOW_MS)) == 0
    log.is_being_cleaned = False

    assert sum(directories.delete_expired(NOW_MS)) > 0
    assert log.segments.base_offsets == [2, 3]
    directories.close()


def test_segments_rolled_during_a_compaction_stay(log: Log) -> None:
    target, group = first_group(log)
    put(log, a="3")
    log.roll(NOW_MS)

    assert target.swap_in(group) is not None

    assert log.segments.base_offsets == [0, 6, 7]
    assert records_in(log)[-1] == (6, b"a", b"3")
