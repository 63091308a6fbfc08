"""What DescribeLogDirs tells of log directories and the logs in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.log import Log
    from storage.log_directory import LogDirectory


@dataclass(frozen=True, slots=True)
class LogDescription:
    """One log; sizes in bytes, the lag in offsets."""

    topic: str
    partition: int
    size: int
    offset_lag: int


@dataclass(frozen=True, slots=True)
class DirectoryDescription:
    """One log directory; -1 for what an offline one cannot tell."""

    path: str
    error_code: ErrorCode
    total_bytes: int
    usable_bytes: int
    logs: list[LogDescription]


def describe_directory(directory: LogDirectory, logs: Iterable[Log]) -> DirectoryDescription:
    """Describe a directory with those of the logs that are in it."""
    try:
        with directory:
            space = directory.disk.filesystem.space(directory.path)
    except LogDirectoryError as error:
        return DirectoryDescription(directory.path, error.code, -1, -1, [])
    here = [
        LogDescription(
            log.topic,
            log.partition,
            log.size_in_bytes,
            max(0, log.log_end_offset - log.high_watermark),
        )
        for log in logs
        if log.directory is directory
    ]
    return DirectoryDescription(directory.path, ErrorCode.NONE, space.total, space.usable, here)
