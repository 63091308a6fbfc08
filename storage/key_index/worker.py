"""`python -m storage.key_index`: a process that builds indexes, or one that looks records up.

It reads jobs from standard input and answers on standard output (`job`), and ends at once when the
broker does. The one that builds, with the argument `--idle`, runs at idle priority. Neither puts an
index in place: it is written under a name of its own, and the broker renames it.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from protocol.errors import ApiError
from storage.filesystem import LocalFileSystem
from storage.key_index.index_builder import IndexSource, build_index
from storage.key_index.job import (
    BuildJob,
    IndexBuilt,
    Job,
    JobFailed,
    decode_job,
    encode_report,
)
from storage.key_index.lookup import Lookup
from storage.key_index.placement import unfinished_path
from storage.segment import file_names
from storage.side_process import SideProcess, Throttle, yield_to_everybody

IDLE: Final = "--idle"


class Worker:
    """Runs the jobs of the broker."""

    def __init__(self, process: SideProcess) -> None:
        self._process = process
        self._filesystem = LocalFileSystem()

    def work(self, line: bytes) -> None:
        """Do one job and report on it."""
        job = decode_job(line)
        try:
            self._process.tell(self._answer(job))
        except ApiError as error:
            self._process.tell(encode_report(JobFailed(error.message)))
        except OSError as error:
            where = error.filename or (job.directory if isinstance(job, BuildJob) else "look-up")
            failed = JobFailed(f"{where}: {error.strerror}", error.errno or 0)
            self._process.tell(encode_report(failed))

    def _answer(self, job: Job) -> bytes:
        if isinstance(job, BuildJob):
            return encode_report(self._build(job))
        began = time.monotonic()
        lookup = Lookup(job, self._filesystem, lambda: (time.monotonic() - began) * 1000)
        report, records = lookup.run()
        return encode_report(report) + records

    def _build(self, job: BuildJob) -> IndexBuilt:
        path = file_names.segment_file(job.directory, job.base_offset, file_names.LOG)
        target_path = unfinished_path(job.directory, job.base_offset)
        log = self._filesystem.open(path)
        source = IndexSource(log, path, job.base_offset, job.size)
        target = self._filesystem.open(target_path, create=True)
        target.truncate(0)
        try:
            throttle = Throttle(job.bytes_per_second)
            return IndexBuilt(*build_index(source, target, throttle))
        except BaseException:
            self._filesystem.remove(target_path)
            raise


def main() -> None:
    """Run until standard input ends."""
    if IDLE in sys.argv[1:]:
        yield_to_everybody()
    process = SideProcess(sys.stdin.buffer, sys.stdout.buffer)
    process.run(Worker(process).work)
