"""A ZooKeeper server of its own: the one among Apache Kafka 3.9.1's jars, started and stopped.

Its data stay in its directory, so a server that is started again has its nodes and sessions.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from tests.support import jars
from tests.support.brokers.broker_process import (
    BrokerError,
    BrokerProcess,
    free_port,
    write_properties,
)
from tests.support.java_command import SHORT_LIVED_FLAGS, SMALL_HEAP, java_command

if TYPE_CHECKING:
    from pathlib import Path

TICK_MS = 500
SHORTEST_SESSION_MS = 2 * TICK_MS
LONGEST_SESSION_MS = 60_000
"""For tests in which a session must outlive its server's absence on a machine that is busy."""

START_TIMEOUT_SECONDS = 120.0
POLL_SECONDS = 0.02
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeperServer:
    """A server on a fixed port, running or not."""

    def __init__(
        self,
        directory: Path,
        properties: dict[str, str] | None = None,
        flags: tuple[str, ...] = (),
    ) -> None:
        self.port = free_port()
        self.process = BrokerProcess(
            name="ZooKeeper", command=[], directory=directory, port=self.port
        )
        config = write_properties(
            directory / "zookeeper.properties",
            {
                "dataDir": str(directory / "data"),
                "clientPort": str(self.port),
                "clientPortAddress": "127.0.0.1",
                "admin.enableServer": "false",
                "tickTime": str(TICK_MS),
                "maxClientCnxns": "0",
                "maxSessionTimeout": str(LONGEST_SESSION_MS),
                **(properties or {}),
            },
        )
        self.process.command = java_command(
            *(jars.KAFKA_3, MAIN_CLASS, str(config)),
            heap=SMALL_HEAP,
            flags=(*SHORT_LIVED_FLAGS, *flags),
        )

    @property
    def address(self) -> str:
        """Return the value of `zookeeper.connect`; a path may be appended."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and wait until it serves."""
        self.process.launch()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self._serves():
            if not self.process.is_running():
                raise BrokerError(f"ZooKeeper ended:\n{self.process.output_tail()}")
            if time.monotonic() > deadline:
                raise BrokerError(f"ZooKeeper does not serve:\n{self.process.output_tail()}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop it as an operator does; sessions live on, on disk."""
        self.process.stop()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def freeze(self) -> None:
        """Freeze it: connections stay open without answers."""
        self.process.freeze()

    def thaw(self) -> None:
        """Resume it."""
        self.process.thaw()

    def _serves(self) -> bool:
        try:
            with socket.create_connection(
                ("127.0.0.1", self.port), timeout=START_TIMEOUT_SECONDS
            ) as connection:
                connection.sendall(b"srvr")
                return b"Mode:" in connection.recv(4096)
        except OSError:
            return False
