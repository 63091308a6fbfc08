"""Checkpoints of offsets by the clock: written when something has changed, and then whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from config.topic import TopicConfig
from storage.directory import offset_checkpoints
from storage.directory.checkpoints import decode_offsets
from storage.directory.moves import LogsAndCopies
from storage.errors import ExhaustedError
from storage.segment import file_names
from tests.storage.produced import NOW_MS, append, batch, crash, open_directories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

CONFIG = TopicConfig()
NAME = "recovery-point-offset-checkpoint"


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectories]:
    directories = open_directories(tmp_path)
    directories.load(lambda _: CONFIG)
    for index in range(2):
        log = directories.create("flights", index, UUID(int=9), CONFIG, NOW_MS)
        append(log, batch(2))
        log.flush()
    directories.checkpoint_recovery_points()
    yield directories
    crash(directories)


def content(logs: LogDirectories) -> dict[tuple[str, int], int]:
    return decode_offsets((Path(logs.directories[0].path) / NAME).read_bytes())


def test_an_unchanged_checkpoint_is_not_written_again(logs: LogDirectories) -> None:
    (Path(logs.directories[0].path) / NAME).write_bytes(b"touched")

    written = logs.checkpoint_recovery_points()

    assert written == set(logs.directories)
    assert (Path(logs.directories[0].path) / NAME).read_bytes() == b"touched"


def test_no_log_is_looked_at_while_none_has_moved(
    logs: LogDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def look(_: LogsAndCopies) -> Iterator[Log]:
        looked_at.append("all")
        return iter(())

    monkeypatch.setattr(LogsAndCopies, "__iter__", look)

    logs.checkpoint_recovery_points()
    assert not looked_at

    log = logs.get("flights", 1)
    assert log is not None
    append(log, batch(1))
    log.flush()
    logs.checkpoint_recovery_points()
    assert looked_at


def test_a_log_start_that_moves_is_written_and_one_that_rests_not_looked_at(
    logs: LogDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logs.get("flights", 1)
    assert log is not None
    append(log, batch(3))
    log.advance_high_watermark(3)
    logs.checkpoint_log_starts()
    (directory,) = logs.directories
    file = Path(directory.path, file_names.LOG_STARTS)
    assert decode_offsets(file.read_bytes()) == {}

    log.advance_log_start_offset(2)
    logs.checkpoint_log_starts()
    assert decode_offsets(file.read_bytes()) == {("flights", 1): 2}

    def look(_: LogsAndCopies) -> Iterator[Log]:
        raise AssertionError("nothing has moved")

    monkeypatch.setattr(LogsAndCopies, "__iter__", look)
    logs.checkpoint_log_starts()


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_could_not_be_written_is_written_later(
    logs: LogDirectories, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    log = logs.get("flights", 1)
    assert log is not None
    append(log, batch(1))
    log.flush()
    with monkeypatch.context() as patch:
        patch.setattr(offset_checkpoints, "encode_offsets", exhausted)
        for _ in range(times):
            assert logs.checkpoint_recovery_points() == set()

    logs.checkpoint_recovery_points()

    assert content(logs) == {("flights", 0): 2, ("flights", 1): 3}


def exhausted(_: object) -> bytes:
    raise ExhaustedError("planted", "it")


def test_an_offset_that_has_moved_either_way_is_written(logs: LogDirectories) -> None:
    log = logs.get("flights", 1)
    assert log is not None
    log.truncate_to(1)

    logs.checkpoint_recovery_points()

    assert content(logs) == {("flights", 0): 2, ("flights", 1): log.recovery_point}
    append(log, batch(5))
    log.flush()
    logs.checkpoint_recovery_points()
    assert content(logs) == {("flights", 0): 2, ("flights", 1): log.recovery_point}


def test_logs_that_come_and_go_are_written(logs: LogDirectories) -> None:
    logs.delete("flights", 0, NOW_MS)
    logs.checkpoint_recovery_points()
    assert content(logs) == {("flights", 1): 2}

    logs.create("hotels", 0, UUID(int=8), CONFIG, NOW_MS)
    logs.checkpoint_recovery_points()
    assert content(logs) == {("flights", 1): 2, ("hotels", 0): 0}


def test_a_clean_stop_always_writes_the_checkpoint(logs: LogDirectories) -> None:
    path = Path(logs.directories[0].path) / NAME
    path.write_bytes(b"touched")

    logs.close()

    assert decode_offsets(path.read_bytes()) == {("flights", 0): 2, ("flights", 1): 2}


def test_a_deleted_logs_checkpointed_start_does_not_apply_to_its_successor(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    directories.load(lambda _: CONFIG)
    deleted = directories.create("flights", 0, UUID(int=9), CONFIG, NOW_MS)
    append(deleted, batch(9))
    deleted.advance_high_watermark(9)
    deleted.advance_log_start_offset(8)
    directories.checkpoint_log_starts()
    directories.delete("flights", 0, NOW_MS)
    crash(directories)
    again = open_directories(tmp_path)
    again.load(lambda _: CONFIG)
    append(again.create("flights", 0, UUID(int=6), CONFIG, NOW_MS), batch(7))
    crash(again)

    last = open_directories(tmp_path)
    last.load(lambda _: CONFIG)

    log = last.get("flights", 0)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 7)
    last.close()
