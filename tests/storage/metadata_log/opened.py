"""Metadata logs to test with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from storage.metadata_log.metadata_log import MetadataLog, MetadataLogSettings
from tests.support.broker_parts.metadata_leader import data_batch, feature, snapshot_of

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.metadata_log.snapshots import SnapshotId
    from storage.filesystem import FileSystem

NOW_MS = 1_795_229_963_000
SMALL = MetadataLogSettings(segment_bytes=500, retention_bytes=-1, retention_ms=-1)


def opened(
    directory: Path,
    settings: MetadataLogSettings = SMALL,
    filesystem: FileSystem | None = None,
) -> MetadataLog:
    """The log in a log directory, as this process finds or makes it."""
    directory.mkdir(parents=True, exist_ok=True)
    place = LogDirectory(str(directory), Disk(filesystem or LocalFileSystem()))
    return MetadataLog.open(place, settings, LogSettings(), NOW_MS)


def extend(log: MetadataLog, count: int, epoch: int = 1) -> None:
    """Append committed batches of one record each."""
    for _ in range(count):
        offset = log.log.log_end_offset
        assert log.append(data_batch([feature(f"feature {offset}")], offset, epoch), NOW_MS) == ""
    log.log.advance_high_watermark(log.log.log_end_offset)


def put_snapshot(log: MetadataLog, snapshot_id: SnapshotId) -> int:
    """Have a complete snapshot on the disk; returns its size."""
    data = snapshot_of([feature("all")], snapshot_id.epoch)
    partial = log.snapshots.begin(snapshot_id)
    partial.append(data[:100])
    partial.append(data[100:])
    partial.finish()
    log.adopt(partial)
    return len(data)


def names(log: MetadataLog) -> list[str]:
    """Files of the directory, of the log only its segments'."""
    found = log.log.directory.disk.filesystem.names(log.log.path)
    left_out = (".index", ".timeindex", ".snapshot")
    return sorted(name for name in found if not name.endswith(left_out))
