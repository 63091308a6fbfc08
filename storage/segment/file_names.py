"""Names of files and directories of a log, as Apache Kafka spells them."""

from __future__ import annotations

import re
from typing import Final

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
DELAY_INDEX: Final = ".delays"
KEY_INDEX: Final = ".keyindex"
"""Only here, and only of topics that ask for it; Apache Kafka leaves it alone."""
SNAPSHOT: Final = ".snapshot"
KAFKA_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
SEGMENT_SUFFIXES: Final = (*KAFKA_SUFFIXES, DELAY_INDEX, KEY_INDEX)
"""All files that come and go with a segment."""

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
TEMPORARY: Final = ".tmp"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

META_PROPERTIES: Final = "meta.properties"
LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
CLOSED_LOGS: Final = "closed-logs"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"

REPLACED: Final = (
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    CLOSED_LOGS,
    RECOVERY_POINTS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    CLEANER_OFFSETS,
)
"""Files of a log directory that are replaced as a whole; with a suffix while being written."""

DELETED_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"
MOVED: Final = "moved-here"
"""In the directory of a partition that is about to take the place of its log in another one."""
CLUSTER_METADATA: Final = "__cluster_metadata-0"

MAX_DIRECTORY_NAME: Final = 255

_SEGMENT_FILE = re.compile(r"(\d{20})(\.\w+)\Z")
_PARTITION = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)\Z")
_FUTURE = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)\.([0-9a-f]{32})-future\Z")
_DELETED = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)\.([0-9a-f]{32})-(?:delete|stray)\Z")


def is_half_written(name: str) -> bool:
    """Return whether a file of a log directory is a temporary file of one of the broker's there."""
    return name.endswith(TEMPORARY) and name.startswith(REPLACED)


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    """Path of one file of the segment that starts at `base_offset`."""
    return f"{directory}/{base_offset:020d}{suffix}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Base offset and suffix of `name`, or None if it is not a segment's file."""
    match = _SEGMENT_FILE.match(name)
    return (int(match[1]), match[2]) if match else None


def partition_directory(topic: str, partition: int) -> str:
    """Name of the directory of a partition."""
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Topic and partition of a directory name, or None when it names none."""
    match = _PARTITION.match(name)
    return (match[1], int(match[2])) if match else None


def future_directory(topic: str, partition: int, unique: str) -> str:
    """Name of the directory of a replica that will take the place of one elsewhere.

    `unique` is 32 hexadecimal digits. The name of the topic is needed whole, so it may be too long.
    """
    return f"{topic}-{partition}.{unique}{FUTURE_DIRECTORY}"


def parse_future_directory(name: str) -> tuple[str, int, str] | None:
    """Topic, partition and unique part of such a name, or None for another one."""
    match = _FUTURE.match(name)
    return (match[1], int(match[2]), match[3]) if match else None


def deleted_directory(topic: str, partition: int, unique: str) -> str:
    """Name under which a deleted partition waits; a long topic name is cut to fit.

    `unique` is 32 hexadecimal digits.
    """
    ending = f"-{partition}.{unique}{DELETED_DIRECTORY}"
    return topic[: MAX_DIRECTORY_NAME - len(ending)] + ending


def is_deleted_directory(name: str) -> bool:
    """Return whether a directory belongs to a deleted partition."""
    return name.endswith(DELETED_DIRECTORY) and _DELETED.match(name) is not None
