"""A job as a process of its own, whose driver can be killed: Python and its JVM at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.jars import REPOSITORY
from tests.support.java_command import SHORT_LIVED_JVM
from tests.support.processes.children import DIES_WITH_PARENT
from tests.support.processes.process_use import group_members
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

RUN_SECONDS = 1800.0
POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Job:
    """A job's command line, `python -m spark_jobs NAME ARGUMENTS`, and where it remembers."""

    name: str
    arguments: tuple[str, ...]
    """All but `--checkpoint`, `--spark-log` and `--once`."""

    checkpoint: Path
    queries: tuple[str, ...] = ()
    """Directories below the checkpoint; the job's name if none is given."""

    launcher: tuple[str, ...] = ()
    """What the command line begins with, if not with `python -m spark_jobs NAME`."""

    environment: Mapping[str, str] = field(default_factory=lambda: SHORT_LIVED_JVM)
    """What the process gets besides the environment of the tests."""

    @property
    def output(self) -> Path:
        """Standard output and error of all runs, one after the other."""
        return self.checkpoint.with_name(f"{self.checkpoint.name}.{self.name}.out")

    def command(self, *more: str) -> list[str]:
        """Return the whole command line."""
        log = self.checkpoint.with_name(f"{self.checkpoint.name}.spark.log")
        own = ("--checkpoint", str(self.checkpoint), "--spark-log", str(log))
        launcher = self.launcher or (sys.executable, "-m", "spark_jobs", self.name)
        return [*launcher, *self.arguments, *own, *more]

    def named_queries(self) -> tuple[str, ...]:
        """Return the queries, given or not."""
        return self.queries or (self.name,)

    def planned(self, query: str) -> set[int]:
        """Return the batches of a query whose offsets are written."""
        return _numbers(self.checkpoint / query / "offsets")

    def committed(self, query: str) -> set[int]:
        """Return the batches of a query that are done."""
        return _numbers(self.checkpoint / query / "commits")

    def unfinished_batches(self) -> list[str]:
        """Return `query/N` for each batch that is planned and not committed."""
        return [
            f"{query}/{number}"
            for query in self.named_queries()
            for number in sorted(self.planned(query) - self.committed(query))
        ]


def _numbers(directory: Path) -> set[int]:
    return {int(path.name) for path in directory.glob("[0-9]*") if path.name.isdigit()}


@dataclass(slots=True)
class JobProcess:
    """A running driver, the leader of a process group that holds its JVM too."""

    process: subprocess.Popen[bytes]
    output: Path
    begin: int
    """Where in the output file its own begins."""

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""
        return self.process.poll()

    def wait(self, seconds: float = RUN_SECONDS) -> int:
        """Wait until it has ended by itself; return the exit code."""
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End Python and JVM with SIGKILL, and wait until both are gone."""
        kill_group(self.process.pid)
        self.process.wait()

    def said(self) -> str:
        """Return its standard output and error so far."""
        with self.output.open("rb") as file:
            file.seek(self.begin)
            return file.read().decode(errors="replace")


@contextmanager
def running(job: Job, *more: str) -> Iterator[JobProcess]:
    """Start a job; what is left of it at the end of the block is killed."""
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with job.output.open("ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            [*DIES_WITH_PARENT, *job.command(*more)],
            cwd=REPOSITORY,
            env={**os.environ, **job.environment, "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    driver = JobProcess(process, job.output, begin)
    try:
        yield driver
    finally:
        driver.kill()


def run_job(job: Job, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a job until it ends by itself; `stdout` is all it said, errors included."""
    with running(job, *more) as driver:
        code = driver.wait()
    return subprocess.CompletedProcess(job.command(*more), code, driver.said(), "")


def kill_group(group: int) -> None:
    """End a process group with SIGKILL, and wait until nothing of it runs."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
    assert wait_until(lambda: not group_members(group), RUN_SECONDS, POLL_SECONDS)
