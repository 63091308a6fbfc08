"""Flushes by the clock, and compaction: of the logs that are to have them now."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from config.topic import TopicConfig
from tests.storage.produced import NOW_MS, append, batch, crash, open_directories

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from storage.directory.directories import LogDirectories

DEFAULT = TopicConfig()
TIMED = dataclasses.replace(DEFAULT, flush_ms=50)
COMPACTED = dataclasses.replace(DEFAULT, cleanup_policy=frozenset({"compact"}))
LATER_MS = NOW_MS + 1000


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectories]:
    directories = open_directories(tmp_path)
    directories.load(lambda _: DEFAULT)
    yield directories
    crash(directories)


def flushed(logs: LogDirectories, now_ms: int) -> int:
    due = logs.flush_due(now_ms)
    for flush in due:
        flush()
    return len(due)


@pytest.mark.parametrize("is_timed_from_the_start", [True, False])
def test_a_log_with_flush_ms_is_flushed(
    logs: LogDirectories, *, is_timed_from_the_start: bool
) -> None:
    config = TIMED if is_timed_from_the_start else DEFAULT
    log = logs.create("flights", 0, UUID(int=9), config, NOW_MS)
    logs.configure(log, TIMED)
    append(log, batch(2))

    assert flushed(logs, LATER_MS) == 1
    assert log.recovery_point == 2


def test_a_log_whose_flush_ms_was_unset_is_not_flushed(logs: LogDirectories) -> None:
    log = logs.create("flights", 0, UUID(int=9), TIMED, NOW_MS)
    logs.configure(log, DEFAULT)
    append(log, batch(2))

    assert flushed(logs, LATER_MS) == 0
    assert log.recovery_point == 0


def test_a_deleted_log_with_flush_ms_is_not_flushed(logs: LogDirectories) -> None:
    log = logs.create("flights", 0, UUID(int=9), TIMED, NOW_MS)
    append(log, batch(2))
    logs.delete("flights", 0, NOW_MS)

    assert flushed(logs, LATER_MS) == 0


def test_the_compacted_logs_are_those_that_are_so_configured_now(logs: LogDirectories) -> None:
    first, second = (
        logs.create("flights", index, UUID(int=9), config, NOW_MS)
        for index, config in enumerate((DEFAULT, COMPACTED))
    )
    assert list(logs.noted.compacted) == [second]

    logs.configure(first, COMPACTED)
    logs.configure(second, DEFAULT)
    assert list(logs.noted.compacted) == [first]

    logs.delete("flights", 0, NOW_MS)
    assert not logs.noted.compacted
