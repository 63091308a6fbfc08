"""A process that dies at any point of a cleaning: nothing is lost, nothing comes back."""

from __future__ import annotations

import dataclasses
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from protocol.records.control import ControlType
from storage.disk import Disk
from storage.filesystem import LocalFile, LocalFileSystem
from storage.log.log_loader import LoadHints, load_log
from storage.log.log_settings import LogSettings
from storage.segment.segment_files import survey
from tests.storage.compaction.compacting import compact, keyed, put, records_in
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    append,
    append_marker,
    marker,
    new_log,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from protocol.wire import Buffer
    from storage.log.log import Log

CONFIG = dataclasses.replace(
    SMALL, segment_bytes=1500, cleanup_policy=frozenset({"compact"}), delete_retention_ms=0
)
LATER_MS = NOW_MS + 86_400_000
LATER_OFFSET = 1 << 40
LEFTOVERS = [".log", ".index", ".timeindex", ".txnindex"]


class KilledError(BaseException):
    """The process is dead: nothing of it runs any more that could tidy up."""


class MortalFileSystem(LocalFileSystem):
    """Dies instead of the n-th step that changes the disk."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.dies_at = 1 << 30

    def step(self, name: str) -> None:
        if len(self.steps) >= self.dies_at:
            raise KilledError(name)
        self.steps.append(name)

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        file = MortalFile(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644))
        file.filesystem = self
        return file

    def rename(self, source: str, target: str) -> None:
        self.step(f"rename to {target}")
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.step(f"remove {path}")
        super().remove(path)

    def set_modified(self, path: str, modified_ms: int) -> None:
        self.step(f"set time of {path}")
        super().set_modified(path, modified_ms)


class MortalFile(LocalFile):
    __slots__ = ("filesystem",)
    filesystem: MortalFileSystem

    def write_at(self, position: int, data: Buffer) -> None:
        self.filesystem.step("write")
        super().write_at(position, data)

    def truncate(self, size: int) -> None:
        self.filesystem.step("truncate")
        super().truncate(size)


def fill(log: Log, epoch: int) -> None:
    """Several segments: keys that come again, tombstones, transactions with both ends."""
    for number in range(6):
        put(log, **{f"k{index}": f"{number}-{index}" * 5 for index in range(number % 5, 8)})
    for outcome in (ControlType.ABORT, ControlType.COMMIT):
        producer = Producer(9, epoch, 4 * outcome, is_transactional=True)
        append(log, keyed([(b"t%d" % index, b"x" * 50) for index in range(4)], producer=producer))
        append_marker(log, marker(producer, outcome))
        put(log, k1=None, k2="new")
    for number in range(6):
        put(log, **{f"m{index}": f"{number}-{index}" * 5 for index in range(number % 5, 8)})


def write_dirty_log(directory: Path) -> LoadHints:
    """Cleaned once, so that tombstones may go, and dirty again; closed."""
    log = new_log(directory, CONFIG)
    fill(log, 0)
    log.roll(NOW_MS)
    compact(log, NOW_MS)
    fill(log, 1)
    log.roll(NOW_MS)
    log.close()
    return LoadHints(True, log.recovery_point, 0, log.log_end_offset, log.cleaned_offset)


def opened(directory: Path, hints: LoadHints, filesystem: LocalFileSystem) -> Log:
    log, outcome = load_log(place(directory, Disk(filesystem)), CONFIG, LogSettings(), hints)
    assert outcome.notes == []
    return log


def reloaded(directory: Path, hints: LoadHints) -> Log:
    """The log as the next process finds it."""
    return opened(directory, dataclasses.replace(hints, was_clean=False), LocalFileSystem())


def leave_cleaned(directory: Path, base_offset: int = 0) -> None:
    """Leave files of an earlier cleaning at the start of the log, which could not be removed.

    Or, at a later offset, files that the compacting process had begun while this one was swapped.
    """
    for suffix in LEFTOVERS:
        (directory / "flights-0" / f"{base_offset:020d}{suffix}.cleaned").write_bytes(b"left")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("left_at", [None, 0, LATER_OFFSET])
def test_death_at_each_step_of_a_cleaning_loses_nothing_and_brings_nothing_back(
    tmp_path: Path, left_at: int | None
) -> None:
    hints = write_dirty_log(tmp_path / "model")
    filesystem = MortalFileSystem()
    shutil.copytree(tmp_path / "model", tmp_path / "whole")
    compact(opened(tmp_path / "whole", hints, filesystem), LATER_MS)
    steps = filesystem.steps
    assert any(step.endswith(".txnindex") for step in steps)
    for number, step in enumerate(steps):
        directory = tmp_path / str(number)
        shutil.copytree(tmp_path / "model", directory)
        filesystem = MortalFileSystem()
        log = opened(directory, hints, filesystem)
        end_offset, aborted = log.log_end_offset, log.aborted_transactions(0, log.log_end_offset)
        filesystem.dies_at = number

        visible = records_in(log)

        def look(log: Log = log) -> None:
            nonlocal visible
            visible = records_in(log)

        with pytest.raises(KilledError):
            compact(log, LATER_MS, after_swap=look)

        if left_at is not None:
            leave_cleaned(directory, left_at)
        again = reloaded(directory, hints)
        found = records_in(again)
        assert again.log_end_offset == end_offset, step
        assert set(found) <= set(visible), step
        assert latest(found) == latest(visible), step
        assert set(again.aborted_transactions(0, end_offset)) <= set(aborted), step
        assert not list((directory / "flights-0").glob("*.swap")), step
        assert not list((directory / "flights-0").glob("*.cleaned")), step
        compact(again, LATER_MS)
        assert latest(records_in(again)) == latest(visible), step


@pytest.mark.timeout(240)
@pytest.mark.parametrize("left_at", [None, 0, LATER_OFFSET])
def test_death_at_each_step_of_clearing_up_a_cleaning_loses_nothing(
    tmp_path: Path, left_at: int | None
) -> None:
    """A broker dies in a swap, the next one in each step of mending that."""
    hints = write_dirty_log(tmp_path / "model")
    before = records_in(opened(tmp_path / "model", hints, LocalFileSystem()))
    for number, died in enumerate(die_in_each_swap(tmp_path, hints)):
        if left_at is not None:
            leave_cleaned(died, left_at)
        for steps in range(1000):
            directory = tmp_path / f"{number} {steps}"
            shutil.copytree(died, directory)
            filesystem = MortalFileSystem()
            filesystem.dies_at = steps
            try:
                survey(filesystem, f"{directory}/flights-0")
                is_whole = True
            except KilledError:
                is_whole = False
            again = reloaded(directory, hints)
            assert latest(records_in(again)) == latest(before), (died.name, filesystem.steps)
            again.close()
            shutil.rmtree(directory)
            if is_whole:
                break


def die_in_each_swap(tmp_path: Path, hints: LoadHints) -> Iterator[Path]:
    """Directories with `.swap` files in them: of the first swap and of the last."""
    filesystem = MortalFileSystem()
    shutil.copytree(tmp_path / "model", tmp_path / "counted")
    compact(opened(tmp_path / "counted", hints, filesystem), LATER_MS)
    steps = filesystem.steps
    swaps = [number for number, step in enumerate(steps) if step.endswith(".log.swap")]
    assert len(swaps) > 1
    for first in (swaps[0], swaps[-1]):
        for number in range(first + 1, len(steps)):
            directory = tmp_path / f"died before {number}"
            shutil.copytree(tmp_path / "model", directory)
            filesystem = MortalFileSystem()
            log = opened(directory, hints, filesystem)
            filesystem.dies_at = number
            with pytest.raises(KilledError):
                compact(log, LATER_MS)
            if not list((directory / "flights-0").glob("*.swap")):
                break
            yield directory


def test_a_segment_that_apache_was_about_to_split_stays_whole(tmp_path: Path) -> None:
    """The later half is renamed first; until the earlier one has its name, nothing is replaced."""
    hints = write_dirty_log(tmp_path / "model")
    log = opened(tmp_path / "model", hints, LocalFileSystem())
    first, second, *rest = log.segments.base_offsets
    before = records_in(log)
    directory = tmp_path / "model" / "flights-0"
    for suffix in LEFTOVERS[1:]:
        (directory / f"{first:020d}{suffix}").unlink(missing_ok=True)
        (directory / f"{second:020d}{suffix}").unlink(missing_ok=True)
    later = (directory / f"{second:020d}.log").rename(directory / f"{second:020d}.log.swap")
    with (directory / f"{first:020d}.log").open("ab") as file:
        file.write(later.read_bytes())
    leave_cleaned(tmp_path / "model")

    for steps in range(7):
        shutil.copytree(tmp_path / "model", tmp_path / str(steps))
        filesystem = MortalFileSystem()
        filesystem.dies_at = steps
        with suppress(KilledError):
            survey(filesystem, f"{tmp_path / str(steps)}/flights-0")
        assert len(filesystem.steps) == min(steps, 5)
        again, _ = load_log(place(tmp_path / str(steps)), CONFIG, LogSettings(), hints)
        assert again.segments.base_offsets == [first, *rest]
        assert records_in(again) == before


def latest(records: list[tuple[int, bytes | None, bytes | None]]) -> dict[bytes | None, bytes]:
    """The last value of each key."""
    values = {key: value for _, key, value in records}
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_a_start_that_dies_while_it_finishes_a_swap_is_finished_by_the_next(
    tmp_path: Path, suffix: str
) -> None:
    """Until the file with `suffix` has its name, the swap is unfinished."""
    hints = write_dirty_log(tmp_path)
    log = opened(tmp_path, hints, LocalFileSystem())
    compact(log, LATER_MS)
    log.close()
    expected = records_in(log)
    aborted = log.aborted_transactions(0, log.log_end_offset)
    suffixes = [".log", ".index", ".timeindex", ".txnindex"]
    for path in (tmp_path / "flights-0").glob("00000000000000000000.*"):
        if path.suffix in suffixes[suffixes.index(suffix) :]:
            path.rename(f"{path}.swap")

    again = reloaded(tmp_path, hints)

    assert records_in(again) == expected
    assert again.aborted_transactions(0, again.log_end_offset) == aborted
