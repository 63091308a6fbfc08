"""`cleaner-offset-checkpoint`: up to where each log is clean, in Apache's form, over restarts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tests.storage.compaction.compacting import compact, put
from tests.storage.produced import NOW_MS, SMALL, TOPIC_ID, crash, open_directories

if TYPE_CHECKING:
    from pathlib import Path

    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

CONFIG = dataclasses.replace(SMALL, cleanup_policy=frozenset({"compact"}))


def opened(directory: Path) -> LogDirectories:
    directories = open_directories(directory)
    directories.load(lambda _topic: CONFIG)
    return directories


def clean_log(directories: LogDirectories, partition: int) -> Log:
    log = directories.create("flights", partition, TOPIC_ID, CONFIG)
    put(log, a="1", b="2")
    log.roll(NOW_MS)
    compact(log)
    return log


def test_clean_logs_are_known_to_be_clean_after_a_restart_and_a_crash(tmp_path: Path) -> None:
    directories = opened(tmp_path)
    clean_log(directories, 0)
    directories.create("flights", 1, TOPIC_ID, CONFIG)
    directories.close()
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nflights 0 2\n"

    again = opened(tmp_path)
    assert [(log.partition, log.cleaned_offset) for log in again] == [(0, 2), (1, -1)]
    again.checkpoint_cleaner_offsets()
    crash(again)

    assert [log.cleaned_offset for log in opened(tmp_path)] == [2, -1]


def test_a_deleted_log_is_forgotten(tmp_path: Path) -> None:
    directories = opened(tmp_path)
    clean_log(directories, 0)
    clean_log(directories, 1)
    directories.checkpoint_cleaner_offsets()

    directories.delete("flights", 0)
    directories.checkpoint_cleaner_offsets()

    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nflights 1 2\n"


def test_a_damaged_cleaner_checkpoint_makes_all_logs_dirty_and_is_reported(tmp_path: Path) -> None:
    directories = opened(tmp_path)
    clean_log(directories, 0)
    directories.close()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n7\n")

    again = open_directories(tmp_path)
    report = again.load(lambda _topic: CONFIG)

    assert [log.cleaned_offset for log in again] == [-1]
    assert any("cleaner-offset-checkpoint is damaged" in note for note in report.notes)
