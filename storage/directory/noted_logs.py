"""The logs that work at times concerns: nearly none of 50,000, so the others are not looked at."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from storage.errors import LogDirectoryError
from storage.log.log_rules import COMPACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from storage.disk import Disk
    from storage.log.log import Log

NEVER: Final = 2**63 - 1
"""Flush interval of a log whose flushes are left to the operating system."""


class NotedLogs:
    """Logs by the periodic work that their configuration requires."""

    def __init__(self) -> None:
        self.timed: dict[Log, None] = {}
        """Logs with `flush.ms`."""
        self.compacted: dict[Log, None] = {}

    def note(self, log: Log) -> None:
        """A log is new, or has another configuration."""
        self.forget(log)
        if log.rules.flush_ms != NEVER:
            self.timed[log] = None
        if COMPACT in log.rules.config.cleanup_policy:
            self.compacted[log] = None

    def forget(self, log: Log) -> None:
        """A log is gone."""
        self.timed.pop(log, None)
        self.compacted.pop(log, None)


class DueFlushes:
    """Logs due for a flush by `flush.ms`; called every second."""

    def __init__(self, disk: Disk, timed: Iterable[Log]) -> None:
        """`timed` are the logs with `flush.ms`, whichever those are then."""
        self._disk = disk
        self._timed = timed

    def take(self, logs: Iterable[Log], now_ms: int) -> list[Callable[[], None]]:
        """Return the flushes due by `flush.ms`, to be called on any thread.

        Leader epochs of `logs` whose write is pending are written.
        """
        if self._disk.unsaved_epochs:
            self._save_epochs(logs)
        due: list[Callable[[], None]] = []
        for log in self._timed:
            if log.flushes.is_due(now_ms, log.rules.flush_ms):
                with suppress(LogDirectoryError):
                    due.append(log.flushes.start())
                    log.flushes.note(now_ms)
        return due

    def _save_epochs(self, logs: Iterable[Log]) -> None:
        self._disk.unsaved_epochs.clear()
        for log in logs:
            if not log.epochs.is_saved:
                with suppress(LogDirectoryError):
                    log.files.write_pending()
                if not log.epochs.is_saved:
                    self._disk.unsaved_epochs.add(log.epochs.path)
