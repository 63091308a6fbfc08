"""Descriptors that run out in the middle of anything: nothing is changed, lost or taken offline."""

from __future__ import annotations

import dataclasses
import itertools
import os
import resource
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import iterate_headers
from protocol.records.control import ControlType
from storage.append.append_source import FROM_COORDINATOR
from storage.disk import Disk
from storage.errors import EXHAUSTION, ExhaustedError
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import LoadHints, create_log, load_log
from storage.log.log_settings import LogSettings
from storage.open_file_cache import OpenFileCache
from storage.segment import sparse_index
from tests.storage.exhaustion import ExhaustedFileSystem
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    all_offsets,
    append,
    batch,
    marker,
    new_log,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.log.log import Log

CONFIG = dataclasses.replace(
    SMALL, segment_bytes=1200, index_interval_bytes=100, segment_index_bytes=1200
)
OTHER = Producer(producer_id=9, is_transactional=True)


def idempotent(sequence: int, count: int = 3) -> memoryview:
    return batch(count, NOW_MS + sequence, Producer(7, 0, sequence), b"v" * 40)


def abort(log: Log, producer: Producer, epoch: int) -> None:
    ending = marker(producer, ControlType.ABORT)
    log.append_as_leader(ending, epoch, NOW_MS, FROM_COORDINATOR)


def run_apart(work: Callable[[], None]) -> None:
    """Run as on another thread, whose errors do not arrive here."""
    with suppress(ExhaustedError):
        work()


def filled(directory: Path, filesystem: ExhaustedFileSystem) -> Log:
    """Several segments, two epochs, producers, and an aborted transaction."""
    settings = LogSettings(run_later=run_apart)
    log = create_log(place(directory, Disk(filesystem)), CONFIG, settings, NOW_MS)
    for sequence in range(0, 30, 3):
        append(log, idempotent(sequence), epoch=sequence // 15)
    append(log, batch(2, NOW_MS + 40, OTHER), epoch=1)
    abort(log, OTHER, 1)
    append(log, idempotent(30), epoch=1)
    return log


class View(NamedTuple):
    """All visible state of a log."""

    offsets: tuple[int, int, int]
    records: list[int]
    bases: list[int]
    """Base offsets of the segments with content."""
    epochs: list[tuple[int, int]]
    """Leader epochs, except one that begins at the end: it may be lost, or known before its first
    record."""
    producers: list[Any]
    stable: int
    aborted: list[Any]
    times: list[Any]
    newest: Any


def view(log: Log) -> View:
    end = log.log_end_offset
    return View(
        (log.log_start_offset, end, log.high_watermark),
        all_offsets(log),
        [base for base in log.segments.base_offsets if base < end],
        [entry for entry in log.epochs.entries() if entry[1] < end],
        sorted(log.producers.snapshot()),
        log.last_stable_offset,
        log.aborted_transactions(log.log_start_offset, end),
        [log.offset_for_timestamp(NOW_MS + each) for each in range(0, 60, 5)],
        log.offset_of_max_timestamp(),
    )


def hold_open(log: Log) -> None:
    assert log.segments.active.file.fileno() >= 0


def found_by_the_next(log: Log, copy: Path, *, was_clean: bool) -> Log:
    """The log as the next process finds it, in a copy of its directory."""
    shutil.copytree(Path(log.path).parent, copy)
    hints = LoadHints(was_clean, log.recovery_point, log.log_start_offset, 2**62)
    return load_log(place(copy), CONFIG, LogSettings(), hints)[0]


def sent_by_leader(directory: Path, end: int) -> memoryview:
    """Return further records of a leader: segments, epochs, an aborted transaction."""
    leader = new_log(directory, dataclasses.replace(CONFIG, segment_bytes=1 << 20))
    leader.truncate_fully_and_start_at(end)
    for sequence in range(33, 60, 3):
        append(leader, idempotent(sequence), epoch=2)
    producer = Producer(11, 0, is_transactional=True)
    append(leader, batch(2, NOW_MS + 41, producer), epoch=3)
    abort(leader, producer, 3)
    append(leader, idempotent(60), epoch=4)
    return memoryview(b"".join(leader.read_batches(end, leader.log_end_offset)))


class Case:
    """A change to a log."""

    def __init__(
        self, directory: Path, act: Callable[[Log], object], *, is_reopened: bool = False
    ) -> None:
        self._directory = directory
        self._is_reopened = is_reopened
        self._numbers = itertools.count()
        self._act = act

    def act(self, log: Log) -> None:
        self._act(log)
        log.advance_high_watermark(log.log_end_offset)

    def fresh(self) -> tuple[Log, ExhaustedFileSystem]:
        """A log with nothing open, the same each time."""
        filesystem = ExhaustedFileSystem()
        path = self.new_path()
        log = filled(path, filesystem)
        if self._is_reopened:
            log.close()
            hints = LoadHints(was_clean=True, high_watermark=2**62)
            settings = LogSettings(run_later=run_apart)
            log, _ = load_log(place(path, Disk(filesystem)), CONFIG, settings, hints)
        log.release()
        return log, filesystem

    def new_path(self) -> Path:
        return self._directory / str(next(self._numbers))

    def must_be(self, log: Log, expected: View) -> None:
        """Check the log in memory, after a crash, and after a clean stop."""
        assert view(log) == expected
        assert view(found_by_the_next(log, self.new_path(), was_clean=False)) == expected

    def try_each(self) -> int:
        """Run out of descriptors at each opening in turn; returns how often that was an error.

        Every second time it is that one opening only that fails.
        """
        log, filesystem = self.fresh()
        before = view(log)
        log, filesystem = self.fresh()
        filesystem.opened = 0
        self.act(log)
        openings = filesystem.opened
        after = view(log)
        errors = 0
        for left in range(openings):
            log, filesystem = self.fresh()
            filesystem.run_out(left, failures=1 if left % 2 else 1000)
            try:
                self.act(log)
            except ExhaustedError:
                errors += 1
                filesystem.recover()
                self.must_be(log, before)
                self.act(log)
            filesystem.recover()
            assert log.directory.failure is None
            self.must_be(log, after)
            log.close()
            assert view(found_by_the_next(log, self.new_path(), was_clean=True)) == after
        return errors


CHANGES: dict[str, Callable[[Log], object]] = {
    "append": lambda log: log.append_as_leader(batch(2, NOW_MS + 50), 1, NOW_MS),
    "append of a producer": lambda log: log.append_as_leader(idempotent(33), 1, NOW_MS),
    "append in a new epoch": lambda log: log.append_as_leader(idempotent(33), 7, NOW_MS),
    "append of what rolls": lambda log: log.append_as_leader(
        batch(1, NOW_MS + 50, value=b"v" * 900), 7, NOW_MS
    ),
    "epoch": lambda log: log.assign_epoch(9, log.log_end_offset),
    "roll": lambda log: log.roll(NOW_MS),
    "flush": lambda log: log.flush(),
    "cut the last batch": lambda log: log.truncate_to(33),
    "cut to the middle": lambda log: log.truncate_to(15),
    "cut at a segment": lambda log: log.truncate_to(log.segments.base_offsets[1]),
    "cut in the first segment": lambda log: log.truncate_to(3),
    "cut nothing but an epoch": lambda log: log.truncate_to(log.log_end_offset),
    "begin anew at the same": lambda log: log.truncate_fully_and_start_at(0),
    "begin anew elsewhere": lambda log: log.truncate_fully_and_start_at(500),
    "delete records": lambda log: log.advance_log_start_offset(20),
    "finish": lambda log: log.finish(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_wholly_or_not_at_all(tmp_path: Path, change: str) -> None:
    Case(tmp_path, CHANGES[change]).try_each()


@pytest.mark.parametrize(
    "change",
    ["append", "append of a producer", "append of what rolls", "cut to the middle", "roll"],
)
def test_a_change_to_an_unread_log_is_made_wholly_or_not_at_all(
    tmp_path: Path, change: str
) -> None:
    assert Case(tmp_path, CHANGES[change], is_reopened=True).try_each() > 1


def test_fetched_batches_are_appended_wholly_or_run_by_run(tmp_path: Path) -> None:
    sent = bytes(sent_by_leader(tmp_path / "leader", 36))

    class ReplicaFetchers(Case):
        """Records appended before descriptors ran out stay: a follower fetches the next ones."""

        def act(self, log: Log) -> None:
            rest = memoryview(bytearray(sent))
            for position, header in iterate_headers(memoryview(sent)):
                if header.base_offset == log.log_end_offset:
                    rest = rest[position:]
                    break
            log.append_as_follower(rest, NOW_MS)
            log.advance_high_watermark(log.log_end_offset)

        def must_be(self, log: Log, expected: View) -> None:
            end = log.log_end_offset
            if end >= expected.offsets[1]:
                assert view(log).records == list(range(end))
            else:
                super().must_be(log, expected)

    assert ReplicaFetchers(tmp_path, lambda _: None).try_each() > 3


def test_an_abort_is_known_to_readers_although_its_index_could_not_be_opened(
    tmp_path: Path,
) -> None:
    filesystem = ExhaustedFileSystem()
    log = filled(tmp_path / "log", filesystem)
    producer = Producer(12, 0, is_transactional=True)
    append(log, batch(2, NOW_MS + 42, producer), epoch=1)
    hold_open(log)
    filesystem.run_out(0, failures=1000)
    abort(log, producer, 1)
    filesystem.recover()
    log.advance_high_watermark(log.log_end_offset)

    assert log.aborted_transactions(36, 99) == [(12, 36, 38, 39)]
    assert log.last_stable_offset == 39
    log.flush()
    found = found_by_the_next(log, tmp_path / "again", was_clean=False)
    assert found.aborted_transactions(36, 99) == [(12, 36, 38, 39)]


@pytest.mark.interpreted
def test_index_entries_wait_for_a_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_index, "PENDING_ENTRIES", 2)
    filesystem = ExhaustedFileSystem()
    log = filled(tmp_path / "log", filesystem)
    hold_open(log)
    filesystem.run_out(0, failures=1000)
    for number in range(4):
        append(log, batch(1, NOW_MS + 60 + number, value=b"v" * 100), epoch=1)
    filesystem.recover()

    written = view(log)
    assert written.records == list(range(40))
    append(log, batch(1, NOW_MS + 70), epoch=1)
    log.close()
    found = found_by_the_next(log, tmp_path / "again", was_clean=True)
    assert view(found).records == list(range(41))
    assert found.offset_for_timestamp(NOW_MS + 62) == log.offset_for_timestamp(NOW_MS + 62)


def test_records_that_could_not_be_flushed_are_flushed_later(tmp_path: Path) -> None:
    filesystem = ExhaustedFileSystem()
    log = filled(tmp_path / "log", filesystem)
    log.flush()
    log.append_as_leader(idempotent(33), 1, NOW_MS)
    hold_open(log)
    log.release()
    filesystem.run_out(0, failures=1000)
    with pytest.raises(ExhaustedError):
        log.flushes.start_for_records(36)
    filesystem.recover()

    log.flushes.start_for_records(36)()

    assert log.append_as_leader(idempotent(33), 1, NOW_MS).is_duplicate


def test_reading_fails_for_now(tmp_path: Path) -> None:
    reads: list[Callable[[Log], object]] = [
        lambda log: log.read(20, 100, 36).tobytes(),
        lambda log: log.offset_for_timestamp(NOW_MS + 20),
        lambda log: log.offset_of_max_timestamp(),
        lambda log: log.aborted_transactions(0, 36),
        lambda log: list(log.read_batches(0, 36)),
    ]
    for number, read in enumerate(reads):
        filesystem = ExhaustedFileSystem()
        log = filled(tmp_path / str(number), filesystem)
        expected = read(log)
        log.release()
        filesystem.run_out(0)
        with pytest.raises(ExhaustedError):
            read(log)
        assert read(log) == expected


@pytest.mark.parametrize("number", sorted(EXHAUSTION))
def test_a_lack_of_descriptors_takes_no_directory_offline(tmp_path: Path, number: int) -> None:
    filesystem = ExhaustedFileSystem(number)
    log = filled(tmp_path / "log", filesystem)
    noted: list[ExhaustedError] = []
    log.directory.on_exhaustion = noted.append
    log.release()
    filesystem.run_out(0)
    with pytest.raises(ExhaustedError, match=os.strerror(number)) as raised:
        log.read(0, 100, 36)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert noted == [raised.value]
    assert log.directory.failure is None


def test_a_file_within_the_limit_of_open_ones_needs_no_other_descriptor(tmp_path: Path) -> None:
    disk = Disk(LocalFileSystem(), files=OpenFileCache(2))
    logs = [new_log(tmp_path / str(number), CONFIG, disk) for number in range(3)]
    for log in logs[:2]:
        hold_open(log)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.open(os.devnull, os.O_RDONLY)
        for log in (*logs, *logs):
            hold_open(log)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
