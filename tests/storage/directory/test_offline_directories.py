"""Log directories that cannot be used, at the start or from some moment on."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from storage.directory.descriptions import describe_directory
from storage.disk import Disk
from storage.errors import DirectoryRefusedError, LogDirectoryError
from tests.storage.directory.test_directories import CONFIG, fill, load
from tests.storage.produced import (
    TOPIC_ID,
    FillingFileSystem,
    append,
    batch,
    open_directories,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.directory.log_directory import LogDirectory


def test_unusable_directory_is_offline_while_another_works(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")

    directories = open_directories(tmp_path / "file" / "logs", tmp_path / "good")
    load(directories)
    log = directories.create("flights", 0, TOPIC_ID, CONFIG)

    assert log.path.startswith(str(tmp_path / "good"))
    bad, good = map(describe_directory, directories.directories)
    assert (bad.error_code, good.error_code) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE)
    assert good.total_bytes >= good.usable_bytes > 0


def test_no_usable_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")

    with pytest.raises(DirectoryRefusedError, match="no log directory can be used"):
        open_directories(tmp_path / "file" / "logs")
    with pytest.raises(DirectoryRefusedError, match="/file: Not a directory"):
        open_directories(tmp_path / "file")


def test_full_disk_takes_the_directory_offline_and_loses_nothing(tmp_path: Path) -> None:
    filesystem = FillingFileSystem()
    directories = open_directories(tmp_path / "a", tmp_path / "b", disk=Disk(filesystem))
    fill(directories, 2)
    failed: list[LogDirectory] = []
    directories.on_failure = failed.append
    log = directories.get("flights", 0)
    other = directories.get("flights", 1)
    assert log is not None
    assert other is not None
    size = log.segments.active.size
    path = log.segments.active.path
    log.release()

    filesystem.is_full = True
    with pytest.raises(LogDirectoryError) as refused:
        append(log, batch(5))
    filesystem.is_full = False

    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.value.directory == log.directory.path
    assert "No space left on device" in refused.value.message
    assert failed == [log.directory]
    with pytest.raises(LogDirectoryError):
        append(log, batch(5))
    with pytest.raises(LogDirectoryError):
        log.read(0, 100, 100)
    assert append(other, batch(5)).first_offset == 100
    directories.close()

    with open(path, "rb") as file:  # noqa: PTH123
        assert len(file.read()) == size
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()
    again = open_directories(tmp_path / "a", tmp_path / "b")
    load(again)
    ends = {log.partition: log.log_end_offset for log in again}
    assert ends == {0: 100, 1: 105}


def test_offline_directory_does_not_keep_what_it_refused(tmp_path: Path) -> None:
    """An exception that is raised again keeps the frames of each time before."""
    filesystem = FillingFileSystem()
    directories = open_directories(tmp_path, disk=Disk(filesystem))
    fill(directories, 1)
    log = directories.get("flights", 0)
    assert log is not None
    log.release()
    filesystem.is_full = True
    for _ in range(20):
        with pytest.raises(LogDirectoryError):
            append(log, batch(5))
        with pytest.raises(LogDirectoryError), log.directory:
            pass
        with pytest.raises(LogDirectoryError):
            directories.create("other", 0, TOPIC_ID, CONFIG)

    assert log.directory.failure is not None
    frames = list(traceback.walk_tb(log.directory.failure.__traceback__))
    assert len(frames) < 10
