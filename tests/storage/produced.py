"""Batches and logs to test with, and a disk that can be made to fail."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from protocol.records.control import ControlType, EndTransactionMarker, build_marker
from protocol.records.record import iterate_records
from storage.append.append_source import FROM_COORDINATOR
from storage.directory.directories import LogDirectories
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFile, LocalFileSystem
from storage.log.log_loader import LoadHints, create_log, load_log
from storage.log.log_settings import LogPlace, LogSettings
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.wire import Buffer
    from storage.append.append_info import AppendInfo
    from storage.log.log import Log
    from storage.log.log_loader import LoadOutcome

NOW_MS = 1_795_229_963_000
TOPIC_ID = UUID(int=5)
SMALL = TopicConfig(segment_bytes=2000, index_interval_bytes=200)
"""Segments and intervals so small that a few batches cross several of each."""


@dataclass(frozen=True)
class Producer:
    """Producer of batches with sequence numbers."""

    producer_id: int = 7
    epoch: int = 0
    sequence: int = 0
    is_transactional: bool = False


def batch(
    count: int = 1,
    timestamp: int = NOW_MS,
    producer: Producer | None = None,
    value: bytes = b"value",
    offset: int = 0,
) -> memoryview:
    """A batch of `count` records, one millisecond apart."""
    records = [NewRecord(timestamp + index, b"key", value) for index in range(count)]
    if producer is None:
        return memoryview(build_batch(records, base_offset=offset))
    return memoryview(
        build_batch(
            records,
            base_offset=offset,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            is_transactional=producer.is_transactional,
        )
    )


def marker(producer: Producer, kind: ControlType, coordinator_epoch: int = 0) -> memoryview:
    """The control batch that ends a transaction."""
    return memoryview(
        build_marker(
            EndTransactionMarker(kind, coordinator_epoch),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            now_ms=NOW_MS,
        )
    )


def place(directory: Path | str, disk: Disk | None = None) -> LogPlace:
    """Partition 0 of topic `flights` in a log directory."""
    return LogPlace(
        LogDirectory(str(directory), disk or Disk(LocalFileSystem())), "flights", 0, TOPIC_ID
    )


def new_log(directory: Path | str, config: TopicConfig = SMALL, disk: Disk | None = None) -> Log:
    """An empty log."""
    return create_log(place(directory, disk), config, LogSettings(), NOW_MS)


def reopen(
    directory: Path | str, config: TopicConfig = SMALL, /, **hints: Any
) -> tuple[Log, LoadOutcome]:
    """The log as the next process finds it after a crash."""
    return load_log(place(directory), config, LogSettings(), LoadHints(was_clean=False, **hints))


def reopen_clean(directory: Path | str, config: TopicConfig = SMALL, /, **hints: Any) -> Log:
    """The log as the next process finds it after a clean shutdown."""
    found = LoadHints(was_clean=True, **hints)
    return load_log(place(directory), config, LogSettings(), found)[0]


def append(log: Log, data: memoryview, epoch: int = 0) -> AppendInfo:
    """Append as a client's batch, and make it visible."""
    info = log.append_as_leader(data, epoch, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    return info


def append_marker(log: Log, data: memoryview) -> AppendInfo:
    """Append a control batch, which only coordinators do."""
    info = log.append_as_leader(data, 0, NOW_MS, FROM_COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)
    return info


def offsets_in(data: Buffer) -> list[int]:
    """Offsets of all records in whole batches of `data`; a cut-off last batch is left out."""
    offsets = []
    position = 0
    while position + 12 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        offsets += [record.offset for record in iterate_records(data[position : position + size])]
        position += size
    return offsets


def all_offsets(log: Log) -> list[int]:
    """Offsets of all records that reading from the start to the end finds."""
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 10_000, log.log_end_offset).tobytes()
        new = [found_offset for found_offset in offsets_in(data) if found_offset >= offset]
        if not new:
            break
        found += new
        offset = new[-1] + 1
    return found


def open_directories(
    *paths: Path | str, disk: Disk | None = None, settings: LogSettings | None = None
) -> LogDirectories:
    """Directories of broker 1 of cluster `cluster`, not loaded yet."""
    disk = disk or Disk(LocalFileSystem())
    settings = settings or LogSettings()
    directories = LogDirectories.open([str(path) for path in paths], disk, settings)
    with disk_in_place():
        directories.identify(1, "cluster", NOW_MS)
    return directories


def crash(directories: LogDirectories) -> None:
    """Release the locks as the end of a process does, and do nothing else."""
    directories._locks.clear()


class FullFile(LocalFile):
    """Writes the first half of what is written, and then the disk is full."""

    __slots__ = ()

    def write_at(self, position: int, data: Buffer) -> None:
        super().write_at(position, memoryview(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FillingFileSystem(LocalFileSystem):
    """A real disk until `is_full` is set."""

    def __init__(self) -> None:
        self.is_full = False

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        if not self.is_full:
            return super().open(path, create=create)
        return FullFile(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644))
