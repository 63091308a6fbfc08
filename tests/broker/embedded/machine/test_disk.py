"""The disk of an embedded broker: full on demand, and dead once its broker was killed."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from broker.embedded.machine.disk import EmbeddedDisk

if TYPE_CHECKING:
    from pathlib import Path


def test_a_disk_that_is_dead_takes_nothing_in(tmp_path: Path) -> None:
    disk = EmbeddedDisk()
    kept = disk.open(str(tmp_path / "kept"), create=True)
    kept.write_at(0, b"before")
    disk.replace(str(tmp_path / "whole"), b"before", sync=True)

    disk.die()

    kept.write_at(0, b"after!")
    kept.truncate(0)
    disk.replace(str(tmp_path / "whole"), b"after", sync=True)
    disk.open(str(tmp_path / "new"), create=True).write_at(0, b"after")
    disk.make_directory(str(tmp_path / "directory"))
    disk.rename(str(tmp_path / "kept"), str(tmp_path / "renamed"))
    disk.remove(str(tmp_path / "kept"))
    disk.remove_tree(str(tmp_path))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {
        "kept": "before",
        "whole": "before",
    }


def test_locks_of_a_killed_broker_are_free_for_its_restart(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    disk = EmbeddedDisk()
    lock = disk.lock(path)
    assert lock is not None
    assert EmbeddedDisk().lock(path) is None

    disk.die()

    assert EmbeddedDisk().lock(path) is not None


def test_a_disk_that_is_full_refuses_what_needs_room(tmp_path: Path) -> None:
    disk = EmbeddedDisk()
    file = disk.open(str(tmp_path / "file"), create=True)
    file.write_at(0, b"before")
    disk.is_full = True

    for work in (
        lambda: file.write_at(6, b"after"),
        lambda: disk.replace(str(tmp_path / "file"), b"after", sync=False),
        lambda: disk.open(str(tmp_path / "new"), create=True),
        lambda: disk.make_directory(str(tmp_path / "directory")),
    ):
        with pytest.raises(OSError, match="No space") as caught:
            work()
        assert caught.value.errno == errno.ENOSPC
    assert disk.space(str(tmp_path)).usable == 0
    assert file.read_at(0, 10) == b"before"
    disk.remove(str(tmp_path / "file"))

    disk.is_full = False
    disk.make_directory(str(tmp_path / "directory"))
    assert [one.name for one in tmp_path.iterdir()] == ["directory"]
