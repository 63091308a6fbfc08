"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

They are the classes that pyspark's own jars hold, run by its `spark-class`. An executor is a
process as well: a worker starts one for each application, and another when that one dies.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.brokers.broker_process import free_port
from tests.support.java_command import SHORT_LIVED_JVM
from tests.support.processes.children import DIES_WITH_PARENT
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

HOST = "127.0.0.1"
SPARK_HOME = Path(getattr(importlib.util.find_spec("pyspark"), "origin", None) or "").parent
MASTER_CLASS = "org.apache.spark.deploy.master.Master"
WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
EXECUTOR_CLASS = "CoarseGrainedExecutorBackend"
START_SECONDS = 300.0
ANSWER_SECONDS = 30.0

ENVIRONMENT = {
    "SPARK_LOCAL_IP": HOST,
    "SPARK_DAEMON_MEMORY": "256m",
}
"""Environment of master and workers, inherited by executors: this machine's address for itself."""


class SparkClusterError(RuntimeError):
    """A part of the cluster did not start; the message holds its output."""


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """Resources that one worker offers to executors."""

    cores: int = 1
    memory: str = "1g"
    environment: Mapping[str, str] = field(default_factory=lambda: SHORT_LIVED_JVM)
    """what worker and executors get besides the environment of the tests"""


class SparkCluster:
    """A master and workers, as a context manager."""

    def __init__(self, directory: Path, workers: int = 2, size: WorkerSize | None = None) -> None:
        self._directory = directory
        self._size = size or WorkerSize()
        self._port = free_port()
        self._web_port = free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * workers

    @property
    def url(self) -> str:
        """Return the value of `--master` for jobs."""
        return f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_all(self) -> None:
        ports = ("--port", str(self._port), "--webui-port", str(self._web_port))
        self._master = self._launch("master", MASTER_CLASS, "--host", HOST, *ports)
        for number in range(len(self._workers)):
            self._launch_worker(number)
        self._wait_for_workers(len(self._workers))

    def start_worker(self, number: int) -> None:
        """Start a worker again that was killed, and wait until the master knows it."""
        known = self.live_workers()
        self._launch_worker(number)
        self._wait_for_workers(known + 1)

    def kill_worker(self, number: int) -> None:
        """End a worker and its executors with SIGKILL."""
        known = self.live_workers()
        self._end_worker(number)
        if not wait_until(lambda: self.live_workers() < known, START_SECONDS):
            raise SparkClusterError(f"the master does not notice that worker {number} is dead")

    def kill_executors(self, number: int) -> int:
        """End the executors of a worker with SIGKILL; returns how many there were."""
        executors = self.executors(number)
        for executor in executors:
            _kill(executor)
        return len(executors)

    def executors(self, number: int) -> list[int]:
        """Return the process ids of a worker's executors."""
        worker = self._workers[number]
        if worker is None:
            return []
        return [pid for pid in _children(worker.pid) if EXECUTOR_CLASS in _command_line(pid)]

    def live_workers(self) -> int:
        """Return how many workers the master counts as alive."""
        try:
            with urlopen(f"http://{HOST}:{self._web_port}/json/", timeout=ANSWER_SECONDS) as page:
                text: str = page.read().decode()
        except (URLError, OSError):
            return 0
        return text.count('"state" : "ALIVE"')

    def processes(self) -> list[int]:
        """Return the process ids of master, workers and executors."""
        own = [process.pid for process in (self._master, *self._workers) if process is not None]
        return own + [pid for number in range(len(self._workers)) for pid in self.executors(number)]

    def stop(self) -> None:
        """End workers, then the master; executors end with their worker."""
        for number, worker in enumerate(self._workers):
            if worker is not None:
                self._end_worker(number)
        if self._master is not None:
            self._master.kill()
            self._master.wait()
            self._master = None

    def _end_worker(self, number: int) -> None:
        executors = self.executors(number)
        worker = self._workers[number]
        assert worker is not None
        worker.kill()
        worker.wait()
        self._workers[number] = None
        for executor in executors:
            _kill(executor)

    def _launch_worker(self, number: int) -> None:
        place = self._directory / f"worker-{number}"
        size = ("--cores", str(self._size.cores), "--memory", self._size.memory)
        own = ("--host", HOST, "--webui-port", "0", "--work-dir", str(place))
        name = f"worker-{number}"
        self._workers[number] = self._launch(name, WORKER_CLASS, *own, *size, self.url)

    def _launch(self, name: str, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        places = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_DIRS": str(self._directory / "local")}
        command = [str(SPARK_HOME / "bin" / "spark-class"), main_class, *arguments]
        with (self._directory / f"{name}.out").open("ab") as output:
            return subprocess.Popen(
                [*DIES_WITH_PARENT, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **ENVIRONMENT, **self._size.environment, **places},
            )

    def _wait_for_workers(self, count: int) -> None:
        def is_decided() -> bool:
            processes = [process for process in (self._master, *self._workers) if process]
            return self.live_workers() >= count or any(p.poll() is not None for p in processes)

        wait_until(is_decided, START_SECONDS)
        if self.live_workers() < count:
            said = "\n".join(path.read_text()[-2000:] for path in self._directory.glob("*.out"))
            raise SparkClusterError(f"{self.live_workers()} of {count} workers run:\n{said}")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:  # it ended meanwhile
        return ""
