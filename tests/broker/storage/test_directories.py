"""Directories that a crash leaves half formatted, and disks that refuse."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from broker.storage.directories import format_directory, read_directories
from broker.storage.plan import Kind, NewDirectory
from protocol.uuids import from_base64
from storage.directory.meta_properties import FORMATTED, MetaProperties
from storage.filesystem import LocalFileSystem
from tests.simulation.machine.disk import SimulatedDisk
from tests.storage.mortal import KilledError, MortalFileSystem

if TYPE_CHECKING:
    from storage.filesystem import FileSystem

IDENTITY = MetaProperties(1, "cluster", from_base64("Wd5U2HhR-pqiYcbCZ0UuEA"), FORMATTED)
CHECKPOINT = b"records" * 50
CHECKPOINT_PATH = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
NOW_MS = 1_795_806_766_643


def write(filesystem: FileSystem, path: str) -> None:
    directory = NewDirectory(path, Kind.VOTER_METADATA, IDENTITY)
    format_directory(filesystem, directory, CHECKPOINT, NOW_MS)


def is_killed_after(steps: int, path: str) -> bool:
    """Whether the process dies before a directory is formatted, if it dies after some steps."""
    filesystem = MortalFileSystem()
    filesystem.steps = steps
    try:
        write(filesystem, path)
    except KilledError:
        return True
    return False


def test_killed_at_any_step_a_directory_is_not_formatted_and_can_be(tmp_path: Path) -> None:
    steps = 0
    while is_killed_after(steps, path := str(tmp_path / str(steps) / "below")):
        assert read_directories(LocalFileSystem(), [path]).unformatted == (path,)
        write(LocalFileSystem(), path)
        assert read_directories(LocalFileSystem(), [path]).formatted == {path: IDENTITY}
        assert Path(path, CHECKPOINT_PATH).read_bytes() == CHECKPOINT
        steps += 1
    assert steps == 4, "the directory, that of the log, and two files"
    assert read_directories(LocalFileSystem(), [path]).formatted == {path: IDENTITY}


def test_formatted_directory_survives_a_power_failure() -> None:
    disk = SimulatedDisk(lambda: NOW_MS)
    write(disk, "/data")

    disk.lose_power(Random(1))

    assert read_directories(disk, ["/data"]).formatted == {"/data": IDENTITY}
    assert disk.read(f"/data/{CHECKPOINT_PATH}") == CHECKPOINT


def test_directory_on_a_full_disk_is_not_formatted() -> None:
    disk = SimulatedDisk(lambda: NOW_MS)
    disk.room = len(CHECKPOINT)

    with pytest.raises(OSError, match="no space left"):
        write(disk, "/data")

    assert read_directories(disk, ["/data"]).unformatted == ("/data",)


def test_directory_is_sorted_by_its_meta_properties(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("formatted", "empty", "absent", "damaged", "file/below")]
    write(LocalFileSystem(), str(paths[0]))
    for path in (paths[1], paths[3]):
        path.mkdir()
    (paths[3] / "meta.properties").write_text("version=9\n")
    (tmp_path / "file").touch()

    found = read_directories(LocalFileSystem(), map(str, paths))

    assert found.formatted == {str(paths[0]): IDENTITY}
    assert found.unformatted == (str(paths[1]), str(paths[2]))
    assert found.unreadable == {
        str(paths[3]): "meta.properties is damaged: version '9' is unknown",
        str(paths[4]): "Not a directory",
    }


def test_data_directory_has_no_metadata_log(tmp_path: Path) -> None:
    path = tmp_path / "data"
    format_directory(LocalFileSystem(), NewDirectory(str(path), Kind.DATA, IDENTITY), None, NOW_MS)

    assert [one.name for one in path.iterdir()] == ["meta.properties"]
