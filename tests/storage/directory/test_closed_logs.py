"""Logs after a clean stop: opened unchanged, without reading them, unless changed since."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from protocol.records.control import ControlType
from storage.disk import Disk
from storage.filesystem import LocalFile, LocalFileSystem
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    all_offsets,
    append,
    append_marker,
    batch,
    crash,
    marker,
    open_directories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.directory.directories import LogDirectories
    from storage.filesystem import Entry
    from storage.log.log import Log

TOPIC_ID = UUID(int=9)
FILE = "closed-logs"
MARK = ".kafka_cleanshutdown"
BATCH_BYTES = len(batch(5))
SLOW = ("flights-0", "hotels-0", "producers-0", "rolled-0")


class CountingFileSystem(LocalFileSystem):
    """Notes which directories were listed, and which files opened."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self.opened: list[str] = []

    def scan(self, path: str) -> list[Entry]:
        self.listed.append(path)
        return super().scan(path)

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        self.opened.append(path)
        return super().open(path, create=create)

    def read(self, path: str) -> bytes:
        self.opened.append(path)
        return super().read(path)

    def of_logs(self, directory: Path) -> list[str]:
        """Return the paths of partitions that were listed or opened."""
        return [
            path
            for path in (*self.listed, *self.opened)
            if Path(path) != directory and (Path(path).parent != directory or Path(path).is_dir())
        ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory of four kinds of logs that was closed in order."""
    directories = open_directories(tmp_path)
    directories.load(lambda _: SMALL)
    directories.create("hotels", 0, UUID(int=8), SMALL, NOW_MS)
    append(directories.create("flights", 0, TOPIC_ID, SMALL, NOW_MS), batch(5), epoch=3)
    rolled = directories.create("rolled", 0, TOPIC_ID, SMALL, NOW_MS)
    for index in range(60):
        append(rolled, batch(5), epoch=index // 30)
    rolled.advance_log_start_offset(7)
    fill_with_producers(directories.create("producers", 0, TOPIC_ID, SMALL, NOW_MS))
    assert len(rolled.segments) > 2
    directories.close()
    return tmp_path


def fill_with_producers(log: Log) -> None:
    append(log, batch(5, producer=Producer(producer_id=1)))
    append(log, batch(5, producer=Producer(producer_id=2, is_transactional=True)))
    append_marker(log, marker(Producer(producer_id=2), ControlType.ABORT))
    append(log, batch(5, producer=Producer(producer_id=3, is_transactional=True)))


@contextmanager
def started(data: Path, filesystem: LocalFileSystem | None = None) -> Iterator[LogDirectories]:
    """The next life of the broker; it ends without a word."""
    directories = open_directories(data, disk=Disk(filesystem or LocalFileSystem()))
    directories.load(lambda _: SMALL)
    yield directories
    crash(directories)


def facts(log: Log) -> dict[str, object]:
    """Return all observable state of a log."""
    segments = [
        (
            each.base_offset,
            each.size,
            each.created_ms,
            each.max_timestamp,
            len(each.offset_index),
            len(each.time_index),
        )
        for each in log.segments
    ]
    return {
        "topic id": log.topic_id,
        "offsets": str(log.offsets),
        "epochs": log.epochs.entries(),
        "segments": segments,
        "snapshots": list(log.files.snapshots.offsets),
        "producers": log.producers.snapshot(),
        "last stable": log.last_stable_offset,
        "aborted": log.aborted_transactions(0, 100),
        "records": all_offsets(log),
    }


def all_facts(data: Path, filesystem: LocalFileSystem | None = None) -> dict[str, object]:
    with started(data, filesystem) as directories:
        return {log.name: facts(log) for log in directories}


def looked_at(data: Path) -> set[str]:
    """The logs whose directories a start lists."""
    filesystem = CountingFileSystem()
    with started(data, filesystem):
        return {Path(path).name for path in filesystem.listed if Path(path) != data}


def test_logs_opened_from_the_file_equal_logs_read_from_disk(data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other, ignore=shutil.ignore_patterns(FILE, "other"))

    assert all_facts(data) == all_facts(other)


def test_a_start_after_a_clean_stop_reads_no_log_but_its_producers(data: Path) -> None:
    filesystem = CountingFileSystem()

    with started(data, filesystem):
        touched = filesystem.of_logs(data)

    assert [Path(path).name for path in touched] == ["00000000000000000016.snapshot"]


def test_a_log_opened_from_the_file_can_be_appended_to(data: Path) -> None:
    with started(data) as directories:
        for name in ("flights", "hotels", "producers", "rolled"):
            log = directories.get(name, 0)
            assert log is not None
            before = all_offsets(log)
            append(log, batch(5), epoch=7)
            assert all_offsets(log) == [*before, *range(log.log_end_offset - 5, log.log_end_offset)]
        directories.close()

    assert looked_at(data) == set()


def test_unused_logs_are_closed_without_being_opened(data: Path) -> None:
    filesystem = CountingFileSystem()
    with started(data, filesystem) as directories:
        filesystem.opened.clear()
        directories.close()
        opened = {Path(path).parent.name for path in filesystem.opened}

    assert "hotels-0" not in opened
    assert looked_at(data) == set()


def test_a_start_removes_the_file_and_the_clean_shutdown_mark(data: Path) -> None:
    with started(data):
        assert not (data / FILE).exists()
        assert not (data / MARK).exists()

    assert looked_at(data) == set(SLOW), "that life ended without a word"


def another_broker_stops_cleanly(data: Path) -> None:
    """Stop as Apache Kafka does: it removes the mark, makes it again, and keeps unknown files."""
    content = (data / MARK).read_bytes()
    (data / MARK).unlink()
    (data / MARK).write_bytes(content)


def another_broker_stops_uncleanly(data: Path) -> None:
    (data / MARK).unlink()


def file_is_cut(data: Path) -> None:
    os.truncate(data / FILE, (data / FILE).stat().st_size - 1)


def file_is_damaged(data: Path) -> None:
    content = bytearray((data / FILE).read_bytes())
    content[-5] ^= 1
    (data / FILE).write_bytes(content)


def file_is_empty(data: Path) -> None:
    (data / FILE).write_bytes(b"")


def file_is_of_another_version(data: Path) -> None:
    (data / FILE).write_bytes(b"1" + (data / FILE).read_bytes()[1:])


@pytest.mark.parametrize(
    "happens",
    [
        another_broker_stops_cleanly,
        another_broker_stops_uncleanly,
        file_is_cut,
        file_is_damaged,
        file_is_empty,
        file_is_of_another_version,
    ],
)
def test_an_unreliable_file_has_all_logs_read(data: Path, happens: Callable[[Path], None]) -> None:
    happens(data)

    assert looked_at(data) == set(SLOW)


def test_a_copied_directory_has_all_logs_read(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "copy", ignore=shutil.ignore_patterns("copy"))

    assert looked_at(tmp_path / "copy") == set(SLOW)


def records_are_added(log: Path) -> None:
    times = (log / "00000000000000000000.log").stat()
    with (log / "00000000000000000000.log").open("ab") as file:
        file.write(batch(5, offset=5))
    os.utime(file.name, ns=(times.st_atime_ns, times.st_mtime_ns))


def records_are_changed_in_place(log: Path) -> None:
    with (log / "00000000000000000000.log").open("r+b") as file:
        file.write(file.read(1))


def file_is_added(log: Path) -> None:
    (log / "00000000000000000009.log.deleted").touch()


def file_is_removed(log: Path) -> None:
    (log / "00000000000000000000.timeindex").unlink()


def log_is_restored(log: Path) -> None:
    shutil.copytree(log, log.with_name("backup"))
    shutil.rmtree(log)
    log.with_name("backup").rename(log)


@pytest.mark.parametrize(
    "happens",
    [
        records_are_added,
        records_are_changed_in_place,
        file_is_added,
        file_is_removed,
        log_is_restored,
    ],
)
def test_only_a_changed_log_is_read(data: Path, happens: Callable[[Path], None]) -> None:
    happens(data / "flights-0")

    assert looked_at(data) == {"flights-0"}


def test_records_added_to_the_last_segment_after_the_stop_are_found(data: Path) -> None:
    records_are_added(data / "flights-0")

    with started(data) as directories:
        log = directories.get("flights", 0)
        assert log is not None
        assert all_offsets(log) == list(range(10))


@pytest.mark.parametrize("left", [0, 40, BATCH_BYTES, BATCH_BYTES + 70, 3 * BATCH_BYTES, -1])
def test_a_closed_segment_that_was_cut_is_noticed_when_it_is_first_opened(
    data: Path, left: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its remaining records and the segments behind it are served; a line names the loss."""
    with started(data) as directories:
        before = rolled(directories)
        first, following = before.segments.base_offsets[1:3]
        size = before.segments[1].size
        expected = all_offsets(before)
        directories.close()
    os.truncate(data / "rolled-0" / f"{first:020d}.log", left % size)
    kept = first + 5 * (left % size // BATCH_BYTES)

    filesystem = CountingFileSystem()
    with started(data, filesystem) as directories:
        assert "rolled-0" not in {Path(path).name for path in filesystem.listed}
        log = rolled(directories)
        lost = range(kept, following)
        assert all_offsets(log) == [offset for offset in expected if offset not in lost]
        for offset in lost:
            assert log.read(offset, 10_000, log.log_end_offset).first_offset == following
        assert log.segments[1].max_timestamp < NOW_MS + 5
        append(log, batch(5), epoch=2)
        directories.close()
    (told,) = [record.getMessage() for record in caplog.records if "was cut" in record.message]
    assert told.endswith(f"from offset {kept} on it has nothing")


def rolled(directories: LogDirectories) -> Log:
    log = directories.get("rolled", 0)
    assert log is not None
    return log


def test_directories_that_come_and_go_are_noticed(data: Path) -> None:
    shutil.rmtree(data / "hotels-0")
    (data / "flights-0").rename(data / "flights-1")

    with started(data) as directories:
        assert {log.name for log in directories} == {"flights-1", "producers-0", "rolled-0"}
        log = directories.get("flights", 1)
        assert log is not None
        assert all_offsets(log) == list(range(5))


def test_a_log_with_a_file_that_waits_for_its_removal_is_looked_at(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    directories.load(lambda _: SMALL)
    log = directories.create("rolled", 0, TOPIC_ID, SMALL, NOW_MS)
    for _ in range(60):
        append(log, batch(5))
    log.advance_log_start_offset(150)
    for _ in directories.delete_expired(NOW_MS):
        pass
    assert list((tmp_path / "rolled-0").glob("*.deleted"))
    directories.close()

    assert looked_at(tmp_path) == {"rolled-0"}
    assert not list((tmp_path / "rolled-0").glob("*.deleted"))
