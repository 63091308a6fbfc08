"""What DescribeLogDirs tells of log directories and the logs in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protocol.errors import ErrorCode


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
