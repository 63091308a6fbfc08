"""Writing the checkpoints of offsets: at times, from any thread, and only what has changed.

A broker writes them every few seconds. With 50,000 logs, of which most rest, making a file takes
sixty milliseconds, and to look at all of them as long where the processor's caches hold other
things by then. So while the offsets of none have moved, none is looked at.
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
    """Where a log starts, if not with a segment; for `log-start-offset-checkpoint`.

    Once retention has come as far, the line stays as long as no log moves: it is true all the same.
    """
    is_moved = log.log_start_offset > log.segments[0].base_offset
    return log.log_start_offset if is_moved else LEFT_OUT


OFFSETS: Final[dict[str, Callable[[Log], int]]] = {
    file_names.RECOVERY_POINTS: attrgetter("offsets.recovery_point"),
    file_names.HIGH_WATERMARKS: attrgetter("offsets.high_watermark"),
    file_names.LOG_STARTS: moved_start,
    file_names.CLEANER_OFFSETS: attrgetter("offsets.cleaned_offset"),
}
"""What each file says of a log. NEVER_CLEANED is LEFT_OUT."""
assert NEVER_CLEANED == LEFT_OUT


class Logs(Protocol):
    """All logs of a broker."""

    @property
    def revision(self) -> int:
        """Another one whenever a log was added or removed."""
        ...

    def __iter__(self) -> Iterator[Log]: ...


class OffsetCheckpoints:
    """What was last written of each file in each directory, and writing it anew."""

    def __init__(self, directories: list[LogDirectory]) -> None:
        self._directories = directories
        self._one = threading.Lock()
        """An older state must not replace a newer one that another thread wrote meanwhile."""
        self._written: dict[tuple[str, str], tuple[int, array[int]]] = {}
        """Revision and offsets in the order of the logs, by directory and name."""
        self._at_rest: dict[tuple[str, str], tuple[int, int]] = {}
        """Revision of the logs, and moves of their offsets, at which a file said what is so."""

    def write_all(self, logs: Logs, *, is_last: bool) -> frozenset[LogDirectory]:
        """Write all files, for the last time changed or not; returns where that went well."""
        written = frozenset(self._directories)
        for name in OFFSETS:
            written &= self.write(name, logs, is_last=is_last)
        return written

    def write(self, name: str, logs: Logs, *, is_last: bool = False) -> frozenset[LogDirectory]:
        """Have the file `name` say what is so; returns the directories where it does now."""
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
