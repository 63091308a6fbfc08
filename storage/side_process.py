"""Common part of each process beside the broker: it reads lines, answers, and ends with the broker.

A thread reads standard input and takes its end for the end of the broker, whatever the process is
working on. At idle priority that may take a while; a broker restarted meanwhile has the same files.
So the kernel ends the process, where it can.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_PRIORITY = 19
LEAST_PAUSE_SECONDS = 0.01
PR_SET_PDEATHSIG = 1
"""Of prctl(2), which is Linux's."""


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


class SideProcess:
    """Reads lines, works, writes."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def run(self, work: Callable[[bytes], None]) -> None:
        """Call `work` with each job line; the end of input ends the process."""
        _end_with_parent()
        threading.Thread(target=self._read, name="input", daemon=True).start()
        while True:
            work(self._lines.get())

    def next_line(self) -> bytes:
        """Wait for a line that belongs to the work under way."""
        return self._lines.get()

    def tell(self, data: bytes) -> None:
        """Write something, and have the broker see it at once."""
        self._target.write(data)
        self._target.flush()

    def _read(self) -> None:
        for line in self._source:
            self._lines.put(line)
        os._exit(0)  # unfinished output is useless without the broker


def _end_with_parent() -> None:
    """Take no further step once the broker is gone, however it went."""
    library = ctypes.CDLL(None)
    if hasattr(library, "prctl"):
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def yield_to_everybody() -> None:
    """Run at idle priority."""
    os.nice(LEAST_PRIORITY)
    if hasattr(os, "SCHED_IDLE"):
        # With the least priority alone, one that wakes up may have to wait for the end of a slice
        # of some milliseconds; one at idle priority is preempted at once.
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
