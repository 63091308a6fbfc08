"""Clean shutdown: all logs are closed, so that the next start has nothing to do, and marked so.

A log that fails to close does not affect others, but its directory is not marked.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from storage.directory import closed_logs
from storage.errors import ExhaustedError, LogDirectoryError
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from storage.directory.log_directory import LogDirectory
    from storage.filesystem import FileSystem
    from storage.log.log import Log

LOGGER = logging.getLogger(__name__)

FLUSHED_ONE_BY_ONE: Final = 16
"""With more unflushed logs than this, the whole disk is flushed instead."""
MARK: Final = json.dumps({"version": 0, "brokerEpoch": -1}, separators=(",", ":")).encode()


def close_logs(logs: Sequence[Log], filesystem: FileSystem) -> frozenset[LogDirectory]:
    """Finish, flush and release logs; returns the directories with one that is not in order."""
    closing = _Closing(logs)
    finished = [log for log in logs if closing.attempt(log, log.finish)]
    unflushed = [log for log in finished if log.recovery_point < log.log_end_offset]
    if len(unflushed) > FLUSHED_ONE_BY_ONE:
        # Several waits for each of a thousand logs would take longer than one for everything.
        filesystem.sync_all()
        for log in unflushed:
            log.offsets.note_flushed()
    in_order = set(finished)
    for log in logs:
        if log not in in_order or log.recovery_point < log.log_end_offset:
            closing.attempt(log, log.flush)
        log.release()
    return frozenset(closing.disordered)


def mark(directories: Iterable[LogDirectory], logs: Sequence[Log]) -> None:
    """Say of directories that their broker has stopped in order, and how it has left the logs."""
    for directory in directories:
        if mark_clean(directory):
            closed_logs.write(directory, [log for log in logs if log.directory is directory])


def mark_clean(directory: LogDirectory) -> bool:
    """Write the mark of a clean stop; return whether it was written, and log a failure."""
    path = f"{directory.path}/{file_names.CLEAN_SHUTDOWN}"
    try:
        with directory:
            directory.disk.filesystem.replace(path, MARK, sync=True)
    except LogDirectoryError as error:
        text = "no clean shutdown of %s, the next start recovers it: %s"
        LOGGER.warning(text, directory.path, error.message)
        return False
    return True


class _Closing:
    """Progress of closing."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs = logs
        self.disordered: set[LogDirectory] = set()

    def attempt(self, log: Log, step: Callable[[], object]) -> bool:
        """Take a step with a log; returns whether that went well, and notes if it did not."""
        try:
            try:
                step()
            except ExhaustedError:
                for each in self._logs:
                    each.release()  # there are no more readers
                step()
        except LogDirectoryError as error:
            if log.directory.failure is None:
                LOGGER.warning("%s not closed cleanly: %s", log.name, error.message)
        except Exception:
            LOGGER.exception("%s not closed cleanly", log.name)
        else:
            return True
        self.disordered.add(log.directory)
        return False
