"""Descriptions of log directories for DescribeLogDirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from storage.directory.log_directory import LogDirectory


@dataclass(frozen=True, slots=True)
class DirectoryDescription:
    """One log directory; -1 for values unknown of an offline one. Sizes in bytes."""

    path: str
    error_code: ErrorCode
    total_bytes: int
    usable_bytes: int


def describe_directory(directory: LogDirectory) -> DirectoryDescription:
    """Describe a directory, but for the logs in it; safe to call from any thread."""
    try:
        with directory:
            space = directory.disk.filesystem.space(directory.path)
    except LogDirectoryError as error:
        return DirectoryDescription(directory.path, error.code, -1, -1)
    return DirectoryDescription(directory.path, ErrorCode.NONE, space.total, space.usable)
