"""A segment is compacted while its damaged `.delays` is rebuilt: the compacted one stands."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from storage.compaction.choice import assess, make_job
from storage.compaction.job import CleanedGroup
from storage.compaction.log_rewrite import clean
from storage.compaction.swap import LogUnderCleaning, discard_cleaned
from storage.delays import delay_rebuild
from storage.delays.delay_index import ENTRY
from storage.filesystem import LocalFileSystem
from tests.storage.compaction.compacting import LIMITS, SEED, records_in
from tests.storage.compaction.test_delayed_records import (
    CONFIG,
    LATER_MS,
    check_index,
    opened_log,
    write_dirty_log,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from storage.log.log import Log

MOST_STEPS = 60


class Cleaning:
    """The cleaning of a log, up to where what is new is to be swapped in."""

    def __init__(self, log: Log) -> None:
        chosen = assess(log, LATER_MS)
        assert chosen is not None
        discard_cleaned(log)
        self._log = log
        self._target = LogUnderCleaning(log)
        self._filesystem = log.directory.disk.filesystem
        job = make_job(chosen, LIMITS, LATER_MS, SEED)
        reports: list[Any] = list(clean(job, self._filesystem, lambda _count: None))
        self._groups = [report for report in reports if isinstance(report, CleanedGroup)]
        self.groups = len(self._groups)

    def swap_in(self) -> dict[str, bytes]:
        """Returns what the delay indexes of the new segments hold."""
        for group in self._groups:
            removals = self._target.swap_in(group)
            assert removals is not None
            for path in removals:
                self._filesystem.remove(path)
        return delay_indexes(self._log)


def delay_indexes(log: Log) -> dict[str, bytes]:
    filesystem = log.directory.disk.filesystem
    names = [name for name in filesystem.names(log.path) if ".delays" in name]
    return {name: filesystem.read(f"{log.path}/{name}") for name in names}


def rebuilding(log: Log, base_offset: int) -> Iterator[None]:
    """Rebuild as `rebuild_delays` does; other work runs between two steps."""
    rebuild = log.delays.rebuild(base_offset)
    try:
        while not rebuild.is_over:
            for _ in rebuild.steps():
                yield
            yield
            rebuild.sync()
            yield
            for _ in rebuild.steps():
                yield
            rebuild.put_in_place()
        yield
        rebuild.sync()
    finally:
        rebuild.close()


def last_entry_is_gone(data: bytes) -> bytes:
    return data[: -ENTRY.size]


def first_time_is_another(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[ENTRY.size - 1] ^= 1
    return bytes(changed)


@pytest.mark.interpreted
@pytest.mark.parametrize("damage", [last_entry_is_gone, first_time_is_another])
@pytest.mark.parametrize(("index", "segments_left"), [(0, 1), (1, 1), (0, 2), (1, 2)])
def test_a_segment_that_is_swapped_at_any_step_of_a_rebuild_keeps_its_new_index(
    damage: Callable[[bytes], bytes],
    index: int,
    segments_left: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delay_rebuild, "HEADERS_AT_A_TIME", 1)
    for swapped_at in range(1, MOST_STEPS):
        directory = tmp_path / str(swapped_at)
        hints = write_dirty_log(directory)
        log = opened_log(directory, hints, LocalFileSystem())
        records = records_in(log)
        point = log.delays.point()
        log.config = dataclasses.replace(CONFIG, segment_bytes=3000 // segments_left)
        cleaning = Cleaning(log)
        assert cleaning.groups == segments_left
        segment = log.segments[index]
        assert segment.delays is not None
        file = log.directory.disk.filesystem.open(segment.delays.path)
        whole = file.read_at(0, file.size())
        file.truncate(len(damage(whole)))
        file.write_at(0, damage(whole))
        work = rebuilding(log, segment.base_offset)

        steps = sum(1 for _ in itertools.islice(work, swapped_at))
        swapped = cleaning.swap_in()
        for _ in work:
            pass

        assert delay_indexes(log) == {
            name: content for name, content in swapped.items() if not name.endswith(".tmp")
        }
        check(log, records, point)
        log.close()
        for was_clean in (True, False):
            again = opened_log(
                directory, dataclasses.replace(hints, was_clean=was_clean), LocalFileSystem()
            )
            check(again, records, point)
            again.close()
        if steps < swapped_at:
            break
    else:
        raise AssertionError("the rebuild takes more steps than were tried")
    assert swapped_at > 5


def check(log: Log, records: list[Any], point: Any) -> None:
    """Check that nothing that counts was lost, and that the index matches the log."""
    check_index(log)
    assert log.delays.point() == point
    assert log.delays.waiting_at(0) is not None
    assert {key: value for _, key, value in records_in(log)} == {
        key: value for _, key, value in records
    }
