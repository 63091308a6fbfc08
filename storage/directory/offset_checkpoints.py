"""Writing of offset checkpoints: periodically, from any thread, and only changed ones.

A broker writes them every few seconds. With 50,000 logs, most of them idle, writing a file takes
sixty milliseconds, and so does looking at all of them with cold caches. So while no offset has
moved, none is looked at.
"""

from __future__ import annotations

import threading
from array import array
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from storage.directory.checkpoints import encode_offsets
from storage.errors import LogDirectoryError
from storage.log.log_offsets import MOVES, NEVER_CLEANED
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.directory.log_directory import LogDirectory
    from storage.log.log import Log

LOOKED_AT_ONCE: Final = 1000
"""Logs that a call looks at: no other thread has a turn meanwhile."""
LEFT_OUT: Final = -1
"""In place of an offset: the file has no line for this log."""


def moved_start(log: Log) -> int:
    """Log start offset for `log-start-offset-checkpoint`, if not the base offset of a segment.

    When retention has caught up, the line stays until a log moves: it is still true.
    """
    is_moved = log.log_start_offset > log.segments[0].base_offset
    return log.log_start_offset if is_moved else LEFT_OUT


OFFSETS: Final[dict[str, Callable[[Log], int]]] = {
    file_names.RECOVERY_POINTS: attrgetter("offsets.recovery_point"),
    file_names.HIGH_WATERMARKS: attrgetter("offsets.high_watermark"),
    file_names.LOG_STARTS: moved_start,
    file_names.CLEANER_OFFSETS: attrgetter("offsets.cleaned_offset"),
}
"""Value of a log in each file. NEVER_CLEANED is LEFT_OUT."""
assert NEVER_CLEANED == LEFT_OUT


class Logs(Protocol):
    """All logs of a broker."""

    @property
    def revision(self) -> int:
        """Changes whenever a log is added or removed."""
        ...

    def __iter__(self) -> Iterator[Log]: ...


class OffsetCheckpoints:
    """Last written content of each file in each directory, and the writing of new ones."""

    def __init__(self, directories: list[LogDirectory]) -> None:
        self._directories = directories
        self._one = threading.Lock()
        """An older state must not replace a newer one that another thread wrote meanwhile."""
        self._written: dict[tuple[str, str], tuple[int, array[int]]] = {}
        """Revision and offsets in the order of the logs, by directory and name."""
        self._at_rest: dict[tuple[str, str], tuple[int, int]] = {}
        """Revision of the logs, and moves of their offsets, at which a file was up to date."""

    def write_all(self, logs: Logs, *, is_last: bool) -> frozenset[LogDirectory]:
        """Write all files, for the last time changed or not; returns where that went well."""
        written = frozenset(self._directories)
        for name in OFFSETS:
            written &= self.write(name, logs, is_last=is_last)
        return written

    def write(self, name: str, logs: Logs, *, is_last: bool = False) -> frozenset[LogDirectory]:
        """Bring the file `name` up to date; return the directories where that succeeded."""
        written = []
        for directory in self._directories:
            if directory.failure is None:
                with self._one, suppress(LogDirectoryError), directory:
                    self._write(name, directory, logs, is_last=is_last)
                    written.append(directory)
        return frozenset(written)

    def _write(self, name: str, directory: LogDirectory, all_logs: Logs, *, is_last: bool) -> None:
        # First: a log that comes or moves meanwhile is written next time.
        revision, moves = all_logs.revision, MOVES.count
        key = directory.path, name
        if not is_last and self._at_rest.get(key) == (revision, moves):
            return
        is_only_one = len(self._directories) == 1
        logs = [log for log in all_logs if is_only_one or log.directory is directory]
        offsets = _offsets_of(logs, OFFSETS[name])
        if is_last or self._written.get(key) != (revision, offsets):
            lines = {
                (log.topic, log.partition): offset
                for log, offset in zip(logs, offsets, strict=True)
                if offset != LEFT_OUT
            }
            path = f"{directory.path}/{name}"
            directory.disk.filesystem.replace(path, encode_offsets(lines), sync=True)
            self._written[key] = revision, offsets
        self._at_rest[key] = revision, moves


def _offsets_of(logs: list[Log], offset_of: Callable[[Log], int]) -> array[int]:
    offsets = array("q")
    for first in range(0, len(logs), LOOKED_AT_ONCE):
        offsets.extend(map(offset_of, logs[first : first + LOOKED_AT_ONCE]))
    return offsets
