"""Flushes of many logs at once: all logs due when a thread is free go to the disk together.

A log is flushed by one thread at a time. Appends meanwhile, by any number of producers, wait for
the next flush and share it. One thread waits for all logs of a directory that are due at the same
time, if the system can do so in one call, which costs the event loop the interpreter's lock once;
else they are spread over the threads. Either way the file system makes their waits one. For the
waits see `durability`.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError, ErrorCode
from storage.errors import ExhaustedError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from broker.partitions.durability import Durability
    from broker.runtime.platform import Platform
    from broker.runtime.timers import Timers
    from storage.directory.log_directory import LogDirectory
    from storage.filesystem import FileSystem
    from storage.log.flushes import RecordsFlush

THREADS: Final = 4
"""They only wait for disks; with several, a slow one does not delay the others."""
POOL: Final = "flushes"

LOGS_AT_ONCE: Final = 64
"""Logs per thread: the ends of their flushes are handled in one turn of the loop, kept short."""

RETRY_MS: Final = 100
"""Pause after a lack of descriptors, as without further appends nothing else would retry."""

Flush = tuple["Durability", "RecordsFlush"]


class GroupCommit:
    """Flushes logs on its threads, each as soon as one is free; `close` ends it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: Timers, platform: Platform) -> None:
        self._loop = loop
        self._timers = timers
        self._filesystem = platform.filesystem
        self._executor = platform.threads(THREADS, POOL)
        self._free = THREADS
        self._due: dict[Durability, None] = {}
        self._is_scheduled = False
        self._is_closed = False
        self.count = 0
        """Flushes that ended so far, of single logs."""

    def add(self, log: Durability) -> None:
        """Flush `log` after the current callback; if a flush is under way, once more."""
        self._due[log] = None
        if not self._is_scheduled and self._free:
            self._is_scheduled = True
            self._timers.soon(self._begin)

    def close(self) -> None:
        """Finish flushes under way, start no more, and report none."""
        self._is_closed = True
        self._executor.shutdown(cancel_futures=True)

    def _begin(self) -> None:
        self._is_scheduled = False
        if self._is_closed:
            return
        waiting = (log for log in self._due if not log.is_under_way)
        ready: dict[LogDirectory, list[Durability]] = {}
        for log in islice(waiting, self._free * LOGS_AT_ONCE):
            ready.setdefault(log.directory, []).append(log)
        for logs in ready.values():
            count = LOGS_AT_ONCE
            if not self._filesystem.syncs_together:
                count = min(-(-len(logs) // max(self._free, 1)), count)
            while logs and self._free:
                self._start(logs[:count])
                del logs[:count]

    def _start(self, logs: Sequence[Durability]) -> None:
        flushes: list[Flush] = []
        for log in logs:
            del self._due[log]
            try:
                flushes.append((log, log.start()))
            except ApiError as error:
                self._tell(log, error)
        if flushes:
            self._free -= 1
            work = self._loop.run_in_executor(self._executor, _flush_all, self._filesystem, flushes)
            work.add_done_callback(partial(self._ended, flushes))

    def _ended(
        self, flushes: Sequence[Flush], done: asyncio.Future[list[Exception | None]]
    ) -> None:
        if self._is_closed:
            return
        self._free += 1
        self.count += len(flushes)
        for (log, _), error in zip(flushes, done.result(), strict=True):
            self._tell(log, error)
        self._begin()

    def _tell(self, log: Durability, error: Exception | None) -> None:
        """Report the end of a flush; an error of one callback does not affect the other logs."""
        if error is not None and not isinstance(error, ApiError):
            self._note(log, error)
            error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            log.ended(error)
        except Exception as mistake:  # noqa: BLE001 - noted
            self._note(log, mistake)
        if isinstance(error, ExhaustedError):
            self._timers.schedule(RETRY_MS, log.flush_if_due)

    def _note(self, log: Durability, error: Exception) -> None:
        error.add_note(f"flushing {log}")
        self._timers.on_failure("group commit", error)


def _flush_all(filesystem: FileSystem, flushes: Sequence[Flush]) -> list[Exception | None]:
    """On a thread: wait for the disk; returns what came of each."""
    files = [file for _, flush in flushes for file in flush.files]
    try:
        outcomes = iter(filesystem.sync_files(files))
    except Exception as error:  # noqa: BLE001 - reported, to all
        return [error for _ in flushes]
    return [_error_of(flush, [next(outcomes) for _ in flush.files]) for _, flush in flushes]


def _error_of(flush: RecordsFlush, outcomes: Sequence[OSError | None]) -> Exception | None:
    try:
        flush.finish(outcomes)
    except Exception as error:  # noqa: BLE001 - reported
        return error
    return None
