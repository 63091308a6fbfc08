"""Delay indexes after a clean stop: missing or short ones are detected, and rebuilt."""

from __future__ import annotations

import dataclasses
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from storage.delays import closed_delays
from storage.delays.delay_index import ENTRY
from storage.directory import closed_logs
from storage.disk import Disk
from storage.errors import DamagedDelaysError
from storage.filesystem import LocalFileSystem
from tests.storage.delays.test_log_delays import DELAYING, delayed, deliver, entries
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    append,
    batch,
    crash,
    open_directories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from config.topic import TopicConfig
    from storage.delays.delay_index import DelayEntry
    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

FILE = "closed-logs"
NO_MORE = dataclasses.replace(DELAYING, delivery_delay_enable=False)
"""The topic takes no delays any more; records wait all the same."""


class CountingFileSystem(LocalFileSystem):
    """Counts what is read of `.log` files."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, path: str, *, create: bool = False) -> object:  # type: ignore[override]
        self.opened.append(path)
        return super().open(path, create=create)


def fill(log: Log) -> None:
    for number in range(12):
        append(log, delayed(2, value=bytes(150)))
        append(log, batch(1, value=bytes(100)))
        if number % 5 == 4:
            deliver(log, 0, 1)
    assert len(log.segments) > 2


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Closed in order; records wait in one log, may wait in another, and cannot in a third."""
    directories = open_directories(tmp_path)
    directories.load(lambda _: DELAYING)
    fill(directories.create("letters", 0, TOPIC_ID, DELAYING, NOW_MS))
    append(directories.create("empty", 0, TOPIC_ID, DELAYING, NOW_MS), batch(1))
    append(directories.create("direct", 0, TOPIC_ID, SMALL, NOW_MS), batch(1))
    directories.close()
    return tmp_path


@contextmanager
def started(
    data: Path, config: TopicConfig = DELAYING, filesystem: LocalFileSystem | None = None
) -> Iterator[LogDirectories]:
    directories = open_directories(data, disk=Disk(filesystem or LocalFileSystem()))
    directories.load(lambda topic: SMALL if topic == "direct" else config)
    yield directories
    crash(directories)


def letters(directories: LogDirectories) -> Log:
    log = directories.get("letters", 0)
    assert log is not None
    return log


def expected(data: Path, aside: Path) -> list[DelayEntry]:
    """Return the entries of an untouched copy of the log."""
    shutil.copytree(data, aside)
    with started(aside) as directories:
        return entries(letters(directories))


def indexes(data: Path) -> list[Path]:
    return sorted((data / "letters-0").glob("*.delays"))


def last_entry_is_gone(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: -ENTRY.size])


def all_but_one_are_gone(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: ENTRY.size])


def last_entry_is_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def is_emptied(path: Path) -> None:
    path.write_bytes(b"")


def is_removed(path: Path) -> None:
    path.unlink()


def is_longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(ENTRY.size))


HAPPENINGS = [
    last_entry_is_gone,
    all_but_one_are_gone,
    last_entry_is_cut,
    is_emptied,
    is_removed,
    is_longer,
]


@pytest.mark.parametrize("config", [DELAYING, NO_MORE], ids=["delaying", "no more"])
@pytest.mark.parametrize("index", [0, 1, -1])
@pytest.mark.parametrize("happens", HAPPENINGS)
def test_a_delay_index_changed_since_the_stop_is_rebuilt(
    data: Path,
    tmp_path_factory: pytest.TempPathFactory,
    happens: Callable[[Path], None],
    index: int,
    config: TopicConfig,
) -> None:
    wanted = expected(data, tmp_path_factory.mktemp("aside") / "copy")
    sizes = [path.stat().st_size for path in indexes(data)]
    path = indexes(data)[index]
    happens(path)

    with started(data, config) as directories:
        assert entries(letters(directories)) == wanted
        assert letters(directories).delays.needed_from() == 0
    assert [path.stat().st_size for path in indexes(data)] == sizes
    assert not list((data / "letters-0").glob("*.tmp"))


@pytest.mark.parametrize("happens", HAPPENINGS)
def test_a_start_that_dies_before_the_rebuild_leaves_it_to_the_next_start(
    data: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Path], None],
) -> None:
    wanted = expected(data, tmp_path_factory.mktemp("aside") / "copy")
    happens(indexes(data)[0])

    directories = open_directories(data)
    with monkeypatch.context() as patched:
        patched.setattr("storage.directory.directory_loader.load_log", die)
        with pytest.raises(KeyboardInterrupt):
            directories.load(lambda _: DELAYING)
    crash(directories)
    assert not (data / FILE).exists()

    with started(data) as directories:
        assert entries(letters(directories)) == wanted


def die(*_: object) -> None:
    raise KeyboardInterrupt


def describe_as_before(data: Path) -> None:
    """The file as the version before wrote it, which knew nothing of delay indexes."""
    directories = open_directories(data)
    directories.load(lambda topic: SMALL if topic == "direct" else DELAYING)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(closed_logs, "know_delays", lambda _: None)
        directories.close()
    assert closed_delays.SUFFIX.encode() not in (data / FILE).read_bytes()


@pytest.mark.parametrize("happens", HAPPENINGS)
def test_delay_indexes_left_by_the_previous_version_are_checked_once(
    data: Path, tmp_path_factory: pytest.TempPathFactory, happens: Callable[[Path], None]
) -> None:
    wanted = expected(data, tmp_path_factory.mktemp("aside") / "copy")
    describe_as_before(data)
    happens(indexes(data)[1])

    with started(data) as directories:
        assert entries(letters(directories)) == wanted
        directories.close()
    with started(data) as directories:
        assert entries(letters(directories)) == wanted


def test_the_previous_version_ignores_the_lines_on_delay_indexes(data: Path) -> None:
    """It looks lines up by directory name, and takes all of a line for one."""
    lines = (data / FILE).read_bytes().splitlines()[1:]
    names = [line.split(b" ", 1)[0] for line in lines]

    assert sorted(names) == [b"direct-0", b"empty-0", b"empty-0:delays", b"letters-0:delays"]
    assert {len(line.split(b" ")) for line in lines if b":" not in line} == {11}


def test_a_log_restored_from_a_backup_has_its_delay_indexes_checked(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wanted = expected(data, tmp_path_factory.mktemp("aside") / "copy")
    shutil.copytree(data / "letters-0", data / "backup", ignore=lambda *_: indexes_of_backup(data))
    shutil.rmtree(data / "letters-0")
    (data / "backup").rename(data / "letters-0")
    assert len(indexes(data)) == 0

    with started(data) as directories:
        assert entries(letters(directories)) == wanted


def indexes_of_backup(data: Path) -> set[str]:
    """Return the indexes, removed from the backup as superfluous."""
    return {path.name for path in indexes(data)}


def test_unchanged_segments_are_opened_only_once(data: Path) -> None:
    filesystem = CountingFileSystem()
    with started(data, filesystem=filesystem):
        opened = [path for path in filesystem.opened if path.endswith(".log")]

    assert len(opened) == len(set(opened)), "each once, for its end"


def test_a_delay_index_that_cannot_be_rebuilt_is_not_used(data: Path) -> None:
    is_removed(indexes(data)[0])
    log = data / "letters-0" / f"{0:020d}.log"
    sound = log.read_bytes()
    log.write_bytes(sound[:16] + b"\x09" + sound[17:])

    with started(data) as directories:
        assert letters(directories).delays.exist
        with pytest.raises(DamagedDelaysError, match="does not say what the log does"):
            entries(letters(directories))

    log.write_bytes(sound)
    with started(data) as directories:
        assert len(entries(letters(directories))) > 2
