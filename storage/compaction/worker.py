"""`python -m storage.compaction`: the process that cleans, one log after the other.

It reads jobs and the word to go on from standard input and answers on standard output, a line each
(`job`). It yields to everybody who wants the processor, and ends at once when the broker does: a
thread reads standard input and takes the end of it for the end of the broker.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

from protocol.errors import ApiError
from storage.compaction.job import CleanedGroup, CleaningFailed, CleaningJob, encode_report
from storage.compaction.log_rewrite import clean
from storage.filesystem import LocalFileSystem

if TYPE_CHECKING:
    from storage.compaction.job import Report

LEAST_PRIORITY = 19
GO_ON = b"go on\n"
LEAST_PAUSE_SECONDS = 0.01


class Throttle:
    """Holds a mean of bytes per second by pauses."""

    def __init__(self, bytes_per_second: float) -> None:
        self._bytes_per_second = bytes_per_second
        self._due = time.monotonic()

    def __call__(self, count: int) -> None:
        """Wait until `count` more bytes are due."""
        now = time.monotonic()
        self._due = max(self._due, now) + count / self._bytes_per_second
        if self._due - now > LEAST_PAUSE_SECONDS:
            time.sleep(self._due - now)


class Worker:
    """Reads lines, works, writes lines."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def run(self) -> None:
        """Work on jobs; the end of input ends the process."""
        threading.Thread(target=self._read, name="input", daemon=True).start()
        while True:
            self._work(CleaningJob.decode(self._lines.get()))

    def _read(self) -> None:
        for line in self._source:
            self._lines.put(line)
        os._exit(0)  # whatever is being written is worth nothing without the broker

    def _work(self, job: CleaningJob) -> None:
        throttle = Throttle(job.limits.bytes_per_second)
        try:
            for report in clean(job, LocalFileSystem(), throttle):
                self._tell(report)
                if isinstance(report, CleanedGroup):
                    self._lines.get()
        except ApiError as error:
            self._tell(CleaningFailed(error.message))
        except OSError as error:
            where = error.filename or job.directory
            self._tell(CleaningFailed(f"{where}: {error.strerror}", error.errno or 0))

    def _tell(self, report: Report) -> None:
        self._target.write(encode_report(report))
        self._target.flush()


def _yield_to_everybody() -> None:
    os.nice(LEAST_PRIORITY)
    if hasattr(os, "SCHED_IDLE"):
        # With the least priority alone, one that wakes up may have to wait for the end of a slice
        # of some milliseconds; who has the processor as idle is put off it at once.
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Run until standard input ends."""
    _yield_to_everybody()
    Worker(sys.stdin.buffer, sys.stdout.buffer).run()
