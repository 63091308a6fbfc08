"""`python -m storage.compaction`: the cleaner process; cleans one log after the other.

It reads jobs and go-aheads from standard input and answers on standard output, a line each (`job`).
It runs at idle priority, and ends at once when the broker does.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError
from storage.compaction.job import CleanedGroup, CleaningFailed, CleaningJob, encode_report
from storage.compaction.log_rewrite import clean
from storage.errors import DamagedDelaysError
from storage.filesystem import LocalFileSystem
from storage.side_process import SideProcess, Throttle, yield_to_everybody

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.compaction.job import Report


KEPT_BYTES: Final = 4 << 20


class Worker:
    """Runs the cleaning jobs of the broker."""

    def __init__(self, process: SideProcess) -> None:
        self._process = process
        self._disk = ThreadPoolExecutor(1, "disk")
        self._is_waited_for = False
        """True if the broker has yet to confirm that a segment is in place."""

    def work(self, line: bytes) -> None:
        """Do one job and report on it.

        While the disk takes in a segment, and the broker puts it in its place, the next one is
        already being written.
        """
        job = CleaningJob.decode(line)
        throttle = Throttle(job.limits.bytes_per_second)
        try:
            for report in clean(job, LocalFileSystem(), throttle, self._begin):
                self._tell(report)
        except DamagedDelaysError as damage:
            self._tell(CleaningFailed(damage.message, damaged_delays=damage.base_offset))
        except ApiError as error:
            self._tell(CleaningFailed(error.message))
        except OSError as error:
            where = error.filename or job.directory
            self._tell(CleaningFailed(f"{where}: {error.strerror}", error.errno or 0))

    def _begin(self, work: Callable[[], None]) -> Callable[[], None]:
        return self._disk.submit(work).result

    def _tell(self, report: Report) -> None:
        if self._is_waited_for:
            self._process.next_line()
        self._process.tell(encode_report(report))
        self._is_waited_for = isinstance(report, CleanedGroup)


def main() -> None:
    """Run until standard input ends."""
    yield_to_everybody()
    _keep_freed_memory()
    process = SideProcess(sys.stdin.buffer, sys.stdout.buffer)
    process.run(Worker(process).work)


def _keep_freed_memory() -> None:
    """Have the C library keep freed buffers, as another of the same size is needed soon.

    Otherwise each is returned to the system, and faulted in again page by page, which takes a tenth
    of all time. glibc's threshold is the largest block freed so far (M_MMAP_THRESHOLD in
    mallopt(3), and twice that for returning memory). This one is never touched, so it takes no
    memory.
    """
    block = bytes(KEPT_BYTES)
    del block
