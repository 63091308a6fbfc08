"""Log directories while descriptors run out, and when one log cannot be closed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.errors import ExhaustedError
from storage.log.log import Log
from storage.log.log_settings import LogSettings
from tests.storage.directory.test_directories import CONFIG, fill, load
from tests.storage.exhaustion import ExhaustedFileSystem
from tests.storage.produced import NOW_MS, TOPIC_ID, append, batch, crash, open_directories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENDS = {0: 100, 1: 100, 2: 100}
FOR_GOOD = 1000


def ends(directories: LogDirectories) -> dict[int, int]:
    return {log.partition: log.log_end_offset for log in directories}


def filled(*paths: Path, number_of_logs: int = 3) -> tuple[LogDirectories, ExhaustedFileSystem]:
    filesystem = ExhaustedFileSystem()
    directories = open_directories(*paths, disk=Disk(filesystem))
    fill(directories, number_of_logs)
    return directories, filesystem


def openings(filesystem: ExhaustedFileSystem, act: Callable[[], object]) -> range:
    """The openings that something takes, by number."""
    filesystem.opened = 0
    act()
    return range(filesystem.opened)


def refusal(act: Callable[[], object]) -> str:
    """Return the text of an action's error; the error itself would hold a lock taken before it."""
    try:
        act()
    except ExhaustedError as error:
        return str(error)
    pytest.fail("nothing was refused")


def test_a_start_without_descriptors_fails_and_leaves_all_for_the_next(tmp_path: Path) -> None:
    before, _ = filled(tmp_path)
    crash(before)
    filesystem = ExhaustedFileSystem()

    def start() -> LogDirectories:
        started = LogDirectories.open([str(tmp_path)], Disk(filesystem), LogSettings())
        try:
            load(started)
        except ExhaustedError:
            crash(started)
            raise
        return started

    for left in openings(filesystem, lambda: crash(start())):
        filesystem.run_out(left, FOR_GOOD)
        assert "Too many open files" in refusal(start)
        filesystem.recover()
    assert ends(start()) == ENDS


def test_a_log_is_created_where_it_was_wanted_once_there_are_descriptors(tmp_path: Path) -> None:
    directories, filesystem = filled(tmp_path / "a", tmp_path / "b", number_of_logs=1)
    fuller = next(log.directory for log in directories)

    def create(index: int) -> Log:
        directories.want("flights", index, fuller)
        return directories.create("flights", index, TOPIC_ID, CONFIG, NOW_MS)

    for left in openings(filesystem, lambda: create(100)):
        index = left + 1
        filesystem.run_out(left, FOR_GOOD)
        with pytest.raises(ExhaustedError):
            create(index)
        filesystem.recover()
        assert directories.get("flights", index) is None
        log = directories.create("flights", index, TOPIC_ID, CONFIG, NOW_MS)
        assert log.directory is fuller
        assert append(log, batch(5)).last_offset == 4


def test_a_removal_without_descriptors_is_repeated_later(tmp_path: Path) -> None:
    directories, filesystem = filled(tmp_path)
    directories.delete("flights", 0, NOW_MS)
    due_ms = NOW_MS + 60_000
    (path,) = directories.take_removals(due_ms)
    filesystem.run_out(0)

    with pytest.raises(ExhaustedError):
        directories.remove(path)

    assert directories.take_removals(due_ms) == [path]
    directories.remove(path)
    assert directories.take_removals(due_ms) == []
    assert not filesystem.exists(path)


def test_a_log_that_cannot_be_deleted_for_now_is_there_until_it_is(tmp_path: Path) -> None:
    directories, filesystem = filled(tmp_path)
    left_over = tmp_path / f"flights-0.{TOPIC_ID.hex}-delete"
    left_over.mkdir()
    filesystem.run_out(0)

    with pytest.raises(ExhaustedError):
        directories.delete("flights", 0, NOW_MS)

    assert ends(directories) == ENDS
    directories.delete("flights", 0, NOW_MS)
    assert ends(directories) == {1: 100, 2: 100}


def test_a_checkpoint_without_descriptors_is_reported(tmp_path: Path) -> None:
    directories, filesystem = filled(tmp_path / "a", tmp_path / "b")
    noted: list[ExhaustedError] = []
    directories.on_exhaustion = noted.append
    filesystem.run_out(0)

    written = directories.checkpoint_high_watermarks()

    assert written == {directories.directories[1]}
    assert [error.directory for error in noted] == [str(tmp_path / "a")]
    assert directories.checkpoint_high_watermarks() == set(directories.directories)


def test_closing_with_few_descriptors_loses_nothing(tmp_path: Path) -> None:
    counted, filesystem = filled(tmp_path / "counted")
    steps = openings(filesystem, counted.close)
    for failures in (1, FOR_GOOD):
        for left in steps[:: 1 if failures == 1 else 4]:
            path = tmp_path / f"{failures}-{left}"
            directories, filesystem = filled(path)
            filesystem.run_out(left, failures)
            directories.close()
            filesystem.recover()
            is_marked = (path / ".kafka_cleanshutdown").exists()
            is_known = (path / "closed-logs").exists()
            assert not (is_known and failures == FOR_GOOD)
            again = open_directories(path)
            report = load(again)
            assert ends(again) == ENDS
            assert report.bytes_cut == 0
            assert report.unclean_directories == ([] if is_marked else [str(path)])
            crash(again)


def test_a_log_that_cannot_be_closed_leaves_the_others_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directories, _ = filled(tmp_path / "a", tmp_path / "b")
    finish = Log.finish
    closed: list[int] = []

    def fail(log: Log) -> None:
        if log.partition == 0:
            raise RuntimeError("odd")
        finish(log)
        closed.append(log.partition)

    monkeypatch.setattr(Log, "finish", fail)
    directories.close()

    assert closed == [1, 2]
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR] == [
        "flights-0 not closed cleanly"
    ]
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()
    again = open_directories(tmp_path / "a", tmp_path / "b")
    load(again)
    assert ends(again) == ENDS


def test_epochs_that_could_not_be_written_are_written_by_the_clock(tmp_path: Path) -> None:
    directories, filesystem = filled(tmp_path)
    log = directories.create("other", 0, UUID(int=9), CONFIG, NOW_MS)
    filesystem.run_out(0, FOR_GOOD)
    log.assign_epoch(7, 0)
    filesystem.recover()
    saved = [log.epochs.is_saved]

    directories.flush_due(NOW_MS)

    assert [*saved, log.epochs.is_saved] == [False, True]
    assert (tmp_path / "other-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n7 0\n"
