"""A log of two directories, and a move of it step by step."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from protocol.records.control import ControlType
from storage.append.append_source import FROM_COORDINATOR
from storage.disk import Disk
from storage.log.log_settings import LogSettings
from tests.storage.mortal import MortalFileSystem
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    Producer,
    all_offsets,
    append,
    batch,
    marker,
    open_directories,
)

if TYPE_CHECKING:
    from pathlib import Path

    from config.topic import TopicConfig
    from storage.directory.directories import LogDirectories
    from storage.directory.future_replica import FutureReplica
    from storage.log.log import Log

ENOUGH = 1000
SETTINGS = LogSettings(draw_below=random.Random(1).randrange)


def opened(directory: Path, disk: Disk | None = None) -> LogDirectories:
    """Directories `a` and `b`, loaded. Nothing waits for the disk."""
    paths = directory / "a", directory / "b"
    disk = disk or Disk(MortalFileSystem())
    logs = open_directories(*paths, disk=disk, settings=SETTINGS)
    logs.load(lambda _topic: SMALL)
    return logs


def filled(logs: LogDirectories, config: TopicConfig = SMALL) -> Log:
    """A log in `a`: two epochs, an aborted transaction, and a start within a segment."""
    logs.want("flights", 0, logs.directories[0])
    log = logs.create("flights", 0, TOPIC_ID, config, NOW_MS)
    for _ in range(30):
        append(log, batch(5))
    producer = Producer(9, 0, 0, is_transactional=True)
    log.assign_epoch(3, log.log_end_offset)
    append(log, batch(3, producer=producer), 3)
    log.append_as_leader(marker(producer, ControlType.ABORT), 3, NOW_MS, FROM_COORDINATOR)
    append(log, batch(2, producer=Producer(11)), 3)
    log.advance_log_start_offset(47)
    return log


def log_of(logs: LogDirectories) -> Log:
    log = logs.get("flights", 0)
    assert log is not None
    return log


def move_of(logs: LogDirectories) -> FutureReplica:
    move = logs.moves.get("flights", 0)
    assert move is not None
    return move


def begin(logs: LogDirectories, number: int = 1) -> FutureReplica:
    logs.move(log_of(logs), logs.directories[number], NOW_MS)
    return move_of(logs)


def copy_all(move: FutureReplica) -> None:
    for _ in range(ENOUGH):
        move.align()
        if not move.lag:
            return
        move.append(move.next_piece().tobytes(), NOW_MS)
    raise AssertionError("it never has everything")


def finish(logs: LogDirectories, move: FutureReplica) -> None:
    assert move.prepare()()
    logs.checkpoint_log_starts()
    logs.checkpoint_high_watermarks()
    assert move.take_rest(NOW_MS)
    old = logs.end_move(move)
    move.settle()
    logs.remove_later(log_of(logs), [old], NOW_MS)
    for path in logs.take_removals(NOW_MS + SMALL.file_delete_delay_ms):
        logs.remove(path)


def moved(logs: LogDirectories) -> None:
    move = move_of(logs)
    copy_all(move)
    finish(logs, move)


def contents(log: Log) -> list[object]:
    """Return all that a reader can observe."""
    return [
        all_offsets(log),
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        log.last_stable_offset,
        log.epochs.entries(),
        log.aborted_transactions(log.log_start_offset, log.log_end_offset),
        sorted(log.producers.producers),
        log.topic_id,
    ]
