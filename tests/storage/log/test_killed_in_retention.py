"""kill -9 at each step of retention, and again in the start after it.

What retention had given up stays gone, all else is there, and so are the producers. A list of all
batches, made before, is the model.
"""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

import pytest

from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from tests.storage.mortal import KilledError, MortalFileSystem
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    Producer,
    append,
    batch,
    crash,
    open_directories,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from config.topic import TopicConfig
    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

BATCHES = 40
KEEP = dataclasses.replace(
    SMALL,
    segment_bytes=1400,
    segment_index_bytes=600,
    retention_ms=-1,
    file_delete_delay_ms=10,
)
LEFTOVERS = (".deleted", ".tmp", "-delete")


@dataclasses.dataclass(frozen=True)
class Case:
    """Configuration of retention, and the log start it begins with."""

    config: TopicConfig
    start: int = 0
    """Offset to which DeleteRecords moves the log start first."""
    now_ms: int = NOW_MS


CASES = {
    "time": Case(dataclasses.replace(KEEP, retention_ms=1000), now_ms=NOW_MS + 1250),
    "everything": Case(dataclasses.replace(KEEP, retention_ms=1000), now_ms=NOW_MS + 10**6),
    "size": Case(dataclasses.replace(KEEP, retention_bytes=3000)),
    "records": Case(KEEP, start=47),
    "all records": Case(KEEP, start=2 * BATCHES),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one log that a killed broker left."""
    directory = tmp_path_factory.mktemp("filled")
    directories = open_directories(directory)
    directories.load(lambda _: KEEP)
    log = directories.create("flights", 0, TOPIC_ID, KEEP, NOW_MS)
    for index in range(BATCHES):
        data = batch(2, NOW_MS + index * 10, Producer(7, 0, index * 2), value=b"x" * 40)
        append(log, data, epoch=index // 15)
    assert len(log.segments) > 4
    directories.checkpoint_high_watermarks()
    crash(directories)
    return directory


def found(directory: Path, filesystem: LocalFileSystem, config: TopicConfig) -> LogDirectories:
    """The directories as the next process finds them."""
    directories = open_directories(directory, disk=Disk(filesystem))
    directories.load(lambda _: config)
    return directories


def log_of(directories: LogDirectories) -> Log:
    log = directories.get("flights", 0)
    assert log is not None
    return log


def batches(log: Log) -> dict[int, bytes]:
    """Return all batches by their end."""
    result = {}
    for data in log.read_batches(log.log_start_offset, log.log_end_offset):
        result[int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big")] = bytes(data)
    return result


def live(directories: LogDirectories, case: Case) -> Iterator[int]:
    """Run one round of retention; yield the log start after each acknowledged step."""
    log = log_of(directories)
    if case.start:
        log.advance_log_start_offset(case.start)
        directories.checkpoint_log_starts()
        yield log.log_start_offset
    sum(directories.delete_expired(case.now_ms))
    yield log.log_start_offset
    for path in directories.take_removals(case.now_ms + 10):
        directories.remove(path)
    directories.checkpoint_log_starts()
    directories.checkpoint_high_watermarks()
    yield log.log_start_offset


def die(directory: Path, case: Case, steps: int) -> tuple[int, bool]:
    """Live `steps` steps; returns the log start that was promised last, and whether it died."""
    filesystem = MortalFileSystem()
    directories = found(directory, filesystem, case.config)
    promised = log_of(directories).log_start_offset
    filesystem.steps = steps
    try:
        for promised in live(directories, case):  # noqa: B007 - the last counts
            pass
    except KilledError:
        return promised, True
    finally:
        filesystem.steps = 0
        crash(directories)
    return promised, False


def die_starting(directory: Path, config: TopicConfig, steps: int) -> bool:
    """Start and die after `steps` steps; return whether it died."""
    filesystem = MortalFileSystem()
    directories = open_directories(directory, disk=Disk(filesystem))
    filesystem.steps = steps
    try:
        directories.load(lambda _: config)
    except KilledError:
        return True
    finally:
        filesystem.steps = 0
        crash(directories)
    return False


def check(directory: Path, config: TopicConfig, promised: int, before: dict[int, bytes]) -> None:
    directories = found(directory, LocalFileSystem(), config)
    log = log_of(directories)
    assert log.log_start_offset >= promised
    assert log.log_end_offset == 2 * BATCHES
    kept = {last: data for last, data in before.items() if last >= log.log_start_offset}
    assert batches(log) == kept
    if kept:
        assert log.producers.producers[7].last_sequence == 2 * BATCHES - 1
    for path in directories.take_removals(0):
        directories.remove(path)
    assert not [path for path in directory.rglob("*") if path.name.endswith(LEFTOVERS)]
    assert append(log, batch(1)).first_offset == 2 * BATCHES
    crash(directories)


@pytest.mark.parametrize("name", CASES)
def test_killed_at_each_step(name: str, filled: Path, tmp_path: Path) -> None:
    case = CASES[name]
    shutil.copytree(filled, tmp_path / "original")
    original = found(tmp_path / "original", LocalFileSystem(), KEEP)
    before = batches(log_of(original))
    crash(original)
    steps = 0
    has_died = True
    starts = set()
    while has_died:
        place = tmp_path / str(steps)
        shutil.copytree(filled, place)
        promised, has_died = die(place, case, steps)
        again = 0
        while die_starting(place, case.config, again):
            again += 3
        check(place, case.config, promised, before)
        starts.add(promised)
        shutil.rmtree(place)
        steps += 1

    assert steps > 5
    assert len(starts) > 1
