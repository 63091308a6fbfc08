"""A node of ours: `python -m broker.node`, whose brokers may outlive their supervisor."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from broker.node.member_lock import holder
from tests.support.brokers.broker_process import (
    BrokerError,
    BrokerProcess,
    free_port,
    write_properties,
)
from tests.support.jars import REPOSITORY
from tests.support.processes.children import freeze
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

SERVING_SECONDS = 180.0
ENDING_SECONDS = 120.0
COMMAND_SECONDS = 400.0
_BROKER = re.compile(r"broker (\d+): (\w+), process (\d+), (\d+) restarts")


class Node:
    """A number of brokers with neighbouring ports. As a context manager it kills all of them."""

    def __init__(
        self, directory: Path, properties: dict[str, str], *, first_id: int = 0, count: int = 2
    ) -> None:
        port = _free_ports(count)
        self.ids = range(first_id, first_id + count)
        self.bootstrap = ",".join(f"127.0.0.1:{port + number}" for number in range(count))
        self.directory = directory
        self._port = port
        self._supervisor = BrokerProcess("node", [], directory, port, REPOSITORY)
        config = write_properties(
            directory / "node.properties",
            {
                "broker.processes": str(count),
                "broker.id": str(first_id),
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": str(directory / "data"),
                **properties,
            },
        )
        self._command = [sys.executable, "-m", "broker.node", "--config", str(config)]
        self._supervisor.command = self._command

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_supervisor()
        for broker_id in self.ids:
            self.kill_broker(broker_id)

    def launch(self) -> None:
        """Start a supervisor."""
        self._supervisor.launch()

    def wait_until_serving(self) -> None:
        """Wait until all brokers serve, by what the supervisor says."""
        if not wait_until(lambda: self.command("--status")[0] == 0, SERVING_SECONDS):
            raise BrokerError(f"a node does not serve:\n{self.output_tail()}")

    def command(self, *words: str) -> tuple[int, str]:
        """Run a command against the node; return the exit code and the output."""
        asked = subprocess.run(
            [*self._command, *words],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return asked.returncode, asked.stdout

    def restarts(self) -> dict[int, int]:
        """Return the restarts of each broker, by the supervisor's log."""
        return {int(found[1]): int(found[4]) for found in self._told()}

    def _told(self) -> list[re.Match[str]]:
        return list(_BROKER.finditer(self.command("--status")[1]))

    def pid(self, broker_id: int) -> int | None:
        """A broker's process; None if it does not run."""
        return holder(str(self.directory / "data" / "node" / f"broker{broker_id}.lock"))

    def port_of(self, process: int) -> int:
        """Return the port of a broker; the first process is 0."""
        return self._port + process

    def pids(self) -> dict[int, int | None]:
        """Return the pids of all brokers."""
        return {broker_id: self.pid(broker_id) for broker_id in self.ids}

    def kill_broker(self, broker_id: int) -> None:
        """End one broker at once, and wait until it has ended."""
        pid = self.pid(broker_id)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.pid(broker_id) != pid, ENDING_SECONDS)

    def freeze_broker(self, broker_id: int) -> None:
        """Stop one broker from using the processor."""
        pid = self.pid(broker_id)
        assert pid is not None
        freeze(pid)

    def thaw_broker(self, broker_id: int) -> None:
        """Resume the broker."""
        os.kill(self.pid(broker_id) or 0, signal.SIGCONT)

    def kill_supervisor(self) -> None:
        """End the supervisor alone, at once."""
        self._supervisor.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor."""
        os.kill(self._supervisor.pid, number)

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        return self._supervisor.stop()

    def wait_until_ended(self) -> int:
        """Wait until the supervisor has ended by itself, and return its exit code."""
        return self._supervisor.wait_until_ended()

    def output_tail(self, lines: int = 60) -> str:
        """The end of what all of them have written."""
        return self._supervisor.output_tail(lines)


def _free_ports(count: int) -> int:
    """Return the first of neighbouring ports that are all free."""
    while True:
        first = free_port()
        if all(map(_is_free, range(first, first + count))):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
