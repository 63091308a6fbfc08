"""`closed-logs`: state of all logs of a directory at a clean stop, for a quick next start.

The start then builds each log from a line of it, without inspecting its files: for 50,000
partitions that saves reading 250,000 names and opening 100,000 files. The file is this broker's
alone; Apache Kafka ignores everything that is not a directory.

It is valid only if the directory has not been used since, so it identifies what would have changed:
the mark of the clean stop, which every broker removes when it starts and creates when it stops, and
for each log its directory and its active segment. They are identified by inode and time of change,
neither of which a user can set: after a copy, a restored backup, or a file added, removed or
truncated, the log is inspected as usual. Truncation of a segment other than the active one is
noticed when that is first opened (`SegmentReading`). A start removes the file before it changes
anything, so that no crash leaves it behind.

    0 50000 2893741283 1837112 1795446876191000000    version, count, checksum of the rest, mark
    flights-0 ...                                     a line for each log, see `_encode`
    flights-0:delays ...                              see `storage.delays.closed_delays`

Versions without delays skip the last kind of line, and write none.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from uuid import UUID
from zlib import crc32

from storage.delays import closed_delays
from storage.delays.closed_delays import ClosedDelays, make_others_void
from storage.directory.known_log import KnownLog, KnownSegment, Seen, know, know_delays, seen
from storage.errors import LogDirectoryError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.directory.log_directory import LogDirectory
    from storage.filesystem import Stamp
    from storage.log.log import Log

LOGGER = logging.getLogger(__name__)

VERSION: Final = b"0"
NOTHING: Final = "-"
SEGMENT_FIELDS: Final = len(KnownSegment._fields)


class ClosedLogs:
    """Lines by the name of the log's directory; each is decoded on demand."""

    def __init__(self, lines: dict[bytes, bytes]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def get(self, name: str, stamp: Stamp) -> KnownLog | None:
        """Recorded state of the log in a directory with this stamp; None if there is none."""
        line = self._lines.get(name.encode())
        known = None if line is None else _decode(line.decode())
        return known if known is not None and known.directory == seen(stamp) else None

    def delays(self) -> Iterator[ClosedDelays]:
        """Recorded delay indexes."""
        for key, line in self._lines.items():
            if key.endswith(closed_delays.SUFFIX.encode()):
                yield closed_delays.decode(line.decode())

    def knows_delays(self, name: str, stamp: Stamp) -> bool:
        """Return whether the delay indexes of the log of this name and stamp are recorded."""
        line = self._lines.get(f"{name}{closed_delays.SUFFIX}".encode())
        return line is not None and closed_delays.decode(line.decode()).are_of(stamp)


def write(directory: LogDirectory, logs: Sequence[Log]) -> None:
    """Leave the file, once the mark of a clean stop is there. A failure costs the next start time.

    Raises nothing: it is logged.
    """
    try:
        with directory:
            filesystem = directory.disk.filesystem
            mark = filesystem.stamp(f"{directory.path}/{file_names.CLEAN_SHUTDOWN}")
            known = [(log.name, described) for log in logs if (described := know(log))]
            if mark is not None:
                delays = map(closed_delays.encode, filter(None, map(know_delays, logs)))
                body = "".join([*(_encode(name, each) for name, each in known), *delays]).encode()
                head = b"%s %d %d %d %d\n" % (VERSION, len(known), crc32(body), *seen(mark))
                path = f"{directory.path}/{file_names.CLOSED_LOGS}"
                filesystem.replace(path, head + body, sync=True)
    except LogDirectoryError as error:
        LOGGER.warning("slow next start of %s: %s", directory.path, error.message)


def take(directory: LogDirectory) -> tuple[bool, ClosedLogs]:
    """Return whether the last stop was clean, and the logs it recorded; both become void."""
    filesystem = directory.disk.filesystem
    mark_path = f"{directory.path}/{file_names.CLEAN_SHUTDOWN}"
    path = f"{directory.path}/{file_names.CLOSED_LOGS}"
    mark = filesystem.stamp(mark_path)
    content = filesystem.read(path) if filesystem.exists(path) else b""
    closed = ClosedLogs({}) if mark is None else _sound(content, mark)
    for known in closed.delays():
        make_others_void(filesystem, directory.path, known)
    filesystem.remove(path)
    filesystem.remove(mark_path)
    # Else a power failure could bring back both, and hide later changes from the next start.
    filesystem.sync_directory(directory.path)
    return mark is not None, closed


def _sound(content: bytes, mark: Stamp) -> ClosedLogs:
    """The lines, if they are whole and of this stop; else none."""
    head, _, body = content.partition(b"\n")
    columns = head.split()
    expected = [VERSION, *(b"%d" % number for number in (crc32(body), *seen(mark)))]
    if [*columns[:1], *columns[2:]] != expected:
        return ClosedLogs({})
    return ClosedLogs({line[: line.index(b" ")]: line for line in body.splitlines()})


def _encode(name: str, known: KnownLog) -> str:
    """Name, directory, active segment, topic id, end, producers; epochs, snapshots and segments."""
    epochs = ",".join(f"{epoch},{start}" for epoch, start in known.epochs)
    snapshots = ",".join(map(str, known.snapshots))
    segments = ",".join(",".join(map(str, segment)) for segment in known.segments)
    topic_id = NOTHING if known.topic_id is None else known.topic_id.hex
    return (
        f"{name} {known.directory.inode} {known.directory.changed_ns} {known.active.inode} "
        f"{known.active.changed_ns} {topic_id} {known.log_end_offset} {known.has_producers:d} "
        f"{epochs or NOTHING} {snapshots or NOTHING} {segments}\n"
    )


def _decode(line: str) -> KnownLog:
    columns = line.split(" ")
    _, inode, changed, active_inode, active_changed, topic_id, end, producers = columns[:8]
    epochs, snapshots, segments = map(_numbers, columns[8:])
    return KnownLog(
        Seen(int(inode), int(changed)),
        Seen(int(active_inode), int(active_changed)),
        _topic_id(topic_id),
        int(end),
        producers == "1",
        list(zip(epochs[::2], epochs[1::2], strict=True)),
        snapshots,
        [
            KnownSegment(*segments[start : start + SEGMENT_FIELDS])
            for start in range(0, len(segments), SEGMENT_FIELDS)
        ],
    )


def _numbers(column: str) -> list[int]:
    return [] if column == NOTHING else list(map(int, column.split(",")))


@lru_cache(maxsize=16)
def _topic_id(column: str) -> UUID | None:
    """The same object for all partitions of a topic, which come one after the other."""
    return None if column == NOTHING else UUID(hex=column)
