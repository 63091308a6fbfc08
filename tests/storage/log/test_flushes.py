"""The time at which a flush is due, and the offset up to which a log counts as flushed."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from storage.disk import Disk
from storage.errors import DeletedLogError
from storage.filesystem import LocalFile, LocalFileSystem
from storage.log.log_loader import create_log
from storage.log.log_settings import LogSettings
from tests.storage.produced import NOW_MS, SMALL, append, batch, new_log, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.log.log import Log

MOMENT_SECONDS = 0.3
"""Time that the flush waits for the truncation, which may have to wait for the flush in turn."""


class Cutting(int):
    """A count of truncations that has the log cut by another thread once it was compared."""

    log: Log
    cutting: Thread

    def __eq__(self, other: object) -> bool:
        is_equal = int(self) == other
        self.cutting = Thread(target=self.log.truncate_to, args=(4,))
        self.cutting.start()
        self.cutting.join(MOMENT_SECONDS)
        return is_equal

    __hash__ = int.__hash__


@pytest.mark.interpreted
def test_a_log_that_is_cut_when_its_flush_ends_is_flushed_up_to_the_cut(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(5):
        append(log, batch(2))
    before = Cutting(log.offsets.truncations)
    before.log = log

    log.flushes._sync(list(log.segments), log.log_end_offset, before)
    before.cutting.join()

    assert (log.log_end_offset, log.recovery_point) == (4, 4)
    append(log, batch(2))
    assert log.recovery_point == 4


def test_flush_is_due_when_its_time_has_passed_and_there_is_something(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    assert not log.flushes.is_due(1000, 50), "nothing to flush: time counts from now"
    append(log, batch(1))

    assert not log.flushes.is_due(1049, 50)
    assert log.flushes.is_due(1050, 50)
    log.flushes.note(1050)
    assert not log.flushes.is_due(1099, 50)


def test_records_appended_after_the_start_of_a_flush_are_not_covered(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))
    flush = log.flushes.start()
    append(log, batch(2))

    flush()

    assert log.recovery_point == 2


def test_roll_has_all_before_it_flushed_later(tmp_path: Path) -> None:
    waiting: list[Callable[[], None]] = []
    log = create_log(place(tmp_path), SMALL, LogSettings(run_later=waiting.append), NOW_MS)
    append(log, batch(2))
    log.roll(NOW_MS)
    append(log, batch(2))
    assert log.recovery_point == 0

    (flush,) = waiting
    flush()

    assert log.recovery_point == 2


def test_follower_that_rolls_over_a_gap_is_flushed_no_further_than_it_goes(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))

    log.roll(NOW_MS, base_offset=50)

    assert (log.log_end_offset, log.recovery_point) == (2, 2)


def test_a_recovery_point_past_the_log_end_is_an_assertion_error(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.offsets.recovery_point = 1

    with pytest.raises(AssertionError):
        log.flush()


class CountedFileSystem(LocalFileSystem):
    """A disk that notes what is synced."""

    def __init__(self) -> None:
        self.synced: list[str] = []

    def open(self, path: str, *, create: bool = False) -> CountedFile:
        file = super().open(path, create=create)
        return CountedFile(os.dup(file.fileno()), Path(path).name, self.synced)

    def sync_directory(self, path: str) -> None:
        self.synced.append("names")
        super().sync_directory(path)


class CountedFile(LocalFile):
    """A file that notes its syncs."""

    def __init__(self, descriptor: int, name: str, synced: list[str]) -> None:
        super().__init__(descriptor)
        self._name = name
        self._synced = synced

    def sync(self) -> None:
        self._synced.append(self._name)
        super().sync()


def test_records_alone_are_one_wait_for_the_disk(tmp_path: Path) -> None:
    filesystem = CountedFileSystem()
    log = new_log(tmp_path, SMALL, Disk(filesystem))
    first = "00000000000000000000.log"
    append(log, batch(2))
    log.flushes.start_for_records(0)()
    assert filesystem.synced == [first, "names"], "the file is new, and so is its name"

    filesystem.synced.clear()
    append(log, batch(2))
    log.flushes.start_for_records(2)()

    assert filesystem.synced == [first]
    assert log.recovery_point == 0


def test_records_in_segments_that_were_closed_since_are_flushed_with_names(tmp_path: Path) -> None:
    filesystem = CountedFileSystem()
    log = new_log(tmp_path, SMALL, Disk(filesystem))
    append(log, batch(2))
    log.flushes.start_for_records(0)()
    log.roll(NOW_MS)
    append(log, batch(2))
    filesystem.synced.clear()

    log.flushes.start_for_records(2)()

    assert filesystem.synced == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "names",
    ]


def test_a_file_that_is_flushed_may_be_let_go_meanwhile(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))
    flush = log.flushes.start_for_records(0)

    log.release()
    log.truncate_fully_and_start_at(5)

    flush()


def test_flushing_a_deleted_log_raises_deleted_log_error(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))
    flush = log.flushes.start_for_records(0)
    log.give_up()

    with pytest.raises(DeletedLogError):
        flush()
