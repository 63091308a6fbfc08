"""While the disk syncs a new segment, the next is written; each is reported when synced."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from storage.compaction.choice import assess, make_job
from storage.compaction.job import CleanedGroup, CleaningDone
from storage.compaction.log_rewrite import clean
from storage.filesystem import File, LocalFile, LocalFileSystem
from tests.storage.compaction.compacting import LIMITS, SEED, put
from tests.storage.compaction.test_swap_crashes import CONFIG
from tests.storage.produced import NOW_MS, new_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from storage.log.log import Log

FULL = OSError(errno.ENOSPC, "planted")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Return a log whose cleaned records fill three new segments."""
    log = new_log(tmp_path, CONFIG)
    for number in range(30):
        put(log, **{f"k{number}-{index}": "x" * 50 for index in range(3)})
    log.roll(NOW_MS)
    return log


class Disk(LocalFileSystem):
    """Notes what is written and synced, and has no room for the segments behind an offset."""

    def __init__(self, steps: list[str], full_at: int | None = None) -> None:
        self.steps = steps
        self._full_at = full_at

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        if create and path.endswith(".log.cleaned"):
            self.steps.append("written")
            if self.steps.count("written") == self._full_at:
                raise FULL
        return super().open(path, create=create)

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        self.steps.append("synced")
        return super().sync_files(files)


def cleaning(log: Log, disk: Disk, begin: Callable[[Callable[[], None]], Any]) -> Iterator[Any]:
    chosen = assess(log, NOW_MS)
    assert chosen is not None
    return clean(make_job(chosen, LIMITS, NOW_MS, SEED), disk, lambda _count: None, begin)


def test_a_segment_is_reported_once_synced_and_the_next_is_written(log: Log) -> None:
    steps: list[str] = []

    def begin(work: Callable[[], None]) -> Callable[[], None]:
        steps.append("begun")
        return work

    reports = cleaning(log, Disk(steps), begin)
    steps.extend("told" if isinstance(one, CleanedGroup) else "done" for one in reports)

    later = ["written", "synced", "told", "begun"]
    count = steps.count("written")
    assert count > 2
    assert steps == ["written", "begun", *later * (count - 1), "synced", "told", "done"]


def test_written_segments_are_reported_when_the_next_meets_a_full_disk(log: Log) -> None:
    told: list[CleanedGroup | CleaningDone] = []
    with pytest.raises(OSError, match="planted"):
        told.extend(cleaning(log, Disk([], full_at=3), lambda work: work))

    assert len(told) == 2
    assert not any(isinstance(report, CleaningDone) for report in told)


def test_a_segment_that_fails_to_sync_is_not_reported(log: Log) -> None:
    def fail() -> None:
        raise FULL

    reports = cleaning(log, Disk([]), lambda _work: fail)
    with pytest.raises(OSError, match="planted"):
        next(reports)
    with pytest.raises(StopIteration):
        next(reports)
