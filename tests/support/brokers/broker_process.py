"""A broker as a process of its own: started, measured, frozen, killed, started again."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import wire
from tests.support.processes.children import DIES_WITH_PARENT, freeze

CLIENT_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST_PORT = 10_000
START_TIMEOUT_SECONDS = 180.0
STOP_TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.01


class BrokerError(RuntimeError):
    """A broker did not start or stop; the message holds the end of its output."""


@dataclass(slots=True)
class BrokerProcess:
    """A broker on a fixed port with a directory of its own, whether it runs or not."""

    name: str
    """Name in reports."""

    command: list[str]
    """The whole command line; starting again runs the same."""

    directory: Path
    """Holds the configuration, the output and, under `data`, the logs."""

    port: int
    working_directory: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)
    """Variables added to the environment of the tests, from its next start on."""

    startup_seconds: float = 0.0
    """Time from the start of the process to the first answered ApiVersions and Metadata."""

    _launched: float = 0.0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap servers for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def data_directory(self) -> Path:
        """The broker's `log.dirs`."""
        return self.directory / "data"

    @property
    def output_path(self) -> Path:
        """Standard output and error of all runs, one after the other."""
        return self.directory / "broker.out"

    @property
    def pid(self) -> int:
        """The process id; only while it runs."""
        if self._process is None:
            raise BrokerError(f"{self.name} is not running")
        return self._process.pid

    def start(self) -> None:
        """Start and wait until it serves."""
        self.launch()
        self.wait_until_serving()

    def launch(self) -> None:
        """Start without waiting."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._launched = time.monotonic()
        with self.output_path.open("ab") as output:
            self._process = subprocess.Popen(
                [*DIES_WITH_PARENT, *self.command],
                stdout=output,
                stderr=output,
                cwd=self.working_directory,
                env={**os.environ, **self.environment},
            )

    def wait_until_serving(self, timeout_seconds: float = START_TIMEOUT_SECONDS) -> None:
        """Wait until ApiVersions and Metadata are answered; notes how long that took."""
        deadline = self._launched + timeout_seconds
        while not (wire.serves_api_versions(self.port) and wire.knows_itself(self.port)):
            if not self.is_running():
                raise BrokerError(f"{self.name} ended while starting:\n{self.output_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"{self.name} does not serve:\n{self.output_tail()}")
            time.sleep(POLL_SECONDS)
        self.startup_seconds = time.monotonic() - self._launched

    def check_serving(self) -> None:
        """Wait until an already started broker answers, for example after a thaw."""
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while not (wire.serves_api_versions(self.port) and wire.knows_itself(self.port)):
            if time.monotonic() > deadline:
                raise BrokerError(f"{self.name} does not serve:\n{self.output_tail()}")
            time.sleep(POLL_SECONDS)

    def is_running(self) -> bool:
        """Say whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """Ask it to stop (SIGTERM), wait, and return its exit code."""
        process = self._process
        if process is None:
            return 0
        process.terminate()
        try:
            code = process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise BrokerError(f"{self.name} ignores SIGTERM:\n{self.output_tail()}") from error
        self._process = None
        return code

    def wait_until_ended(self) -> int:
        """Wait until it has ended by itself, and return its exit code."""
        process = self._process
        if process is None:
            raise BrokerError(f"{self.name} is not running")
        code = process.wait(STOP_TIMEOUT_SECONDS)
        self._process = None
        return code

    def kill(self) -> None:
        """End it with SIGKILL: nothing of it runs a line more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop it from using the processor (SIGSTOP)."""
        freeze(self.pid)

    def thaw(self) -> None:
        """Resume it (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """Processor time it used so far, user and system."""
        text = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii")
        fields = text.rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Resident memory now."""
        return self._status_kilobytes("VmRSS") * 1024

    def peak_resident_bytes(self) -> int:
        """The most resident memory it ever had."""
        return self._status_kilobytes("VmHWM") * 1024

    def output_tail(self, lines: int = 40) -> str:
        """Return the end of its output."""
        if not self.output_path.exists():
            return ""
        text = self.output_path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _status_kilobytes(self, name: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in text.splitlines() if line.startswith(name + ":"))
        return int(line.split()[1])


def free_port() -> int:
    """Return a port that nothing listens on at this moment.

    It is drawn from those that the system gives no client: a broker that was killed would not get
    its port back whenever somebody's connection has been given it meanwhile.
    """
    first_of_clients = int(CLIENT_PORTS.read_text(encoding="utf-8").split()[0])
    while True:
        port = random.SystemRandom().randrange(FIRST_PORT, first_of_clients)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def write_properties(path: Path, properties: dict[str, str]) -> Path:
    """Write a Java properties file of plain keys, and values without line breaks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    escaped = {key: value.replace("\\", "\\\\") for key, value in properties.items()}
    text = "".join(f"{key}={value}\n" for key, value in escaped.items())
    path.write_text(text, encoding="utf-8")
    return path
