"""The files of a log: new segments in the place of others, names, and letting go."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from storage.disk import Disk
from storage.errors import DeletedLogError, LogDirectoryError
from storage.filesystem import LocalFile, LocalFileSystem
from tests.storage.produced import NOW_MS, SMALL, all_offsets, append, batch, new_log

if TYPE_CHECKING:
    from pathlib import Path


class NoNewFiles(LocalFileSystem):
    """A disk that is full for new files on demand."""

    is_full = False

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        if create and self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().open(path, create=create)


def names(directory: Path) -> set[str]:
    return {path.name for path in (directory / "flights-0").iterdir()}


def test_new_segment_may_have_the_name_of_one_it_replaces(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))

    new = log.files.new_segment_instead_of([log.segments.active], 0, SMALL, NOW_MS)

    assert (new.base_offset, new.size) == (0, 0)
    assert (tmp_path / "flights-0" / f"{0:020d}.log").stat().st_size == 0
    assert not any(name.endswith(".deleted") for name in names(tmp_path))


def test_segments_keep_their_names_if_no_other_can_be_made(tmp_path: Path) -> None:
    filesystem = NoNewFiles()
    log = new_log(tmp_path, disk=Disk(filesystem))
    append(log, batch(2))
    before = names(tmp_path)
    filesystem.is_full = True

    with pytest.raises(LogDirectoryError):
        log.truncate_fully_and_start_at(100)

    assert names(tmp_path) == before


def test_files_that_are_let_go_are_opened_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))

    log.files.release()

    assert all_offsets(log) == [0, 1]


def test_changes_to_a_deleted_log_raise_deleted_log_error(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    directory = log.directory

    assert log.give_up() is directory

    with pytest.raises(DeletedLogError):
        log.files.assign_epoch(1, 0)
    with pytest.raises(DeletedLogError):
        append(log, batch(1))
    assert directory.failure is None
