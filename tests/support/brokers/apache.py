"""Apache Kafka's own brokers: 4.4 or 4.3 (KRaft), and 3.9 with ZooKeeper.

The last is two JVMs; its log directories carry `meta.properties` version 0 and
`partition.metadata`, the layout that our broker shares.
"""

from __future__ import annotations

import os
import subprocess
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from kazoo.client import KazooClient

from tests.support import jars
from tests.support.brokers.broker_process import (
    BrokerError,
    BrokerProcess,
    free_port,
    write_properties,
)
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.java_command import SHORT_LIVED_FLAGS, SMALL_HEAP, java_command
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_TIMEOUT_SECONDS = 120
ZOOKEEPER_SESSION_MS = 20_000
"""Apache's broker dies if it expires while it starts, which on a busy machine it is long about."""
ZOOKEEPER_END_SECONDS = 120.0
BROKER_ID = 0
ZOOKEEPER_CONNECTION_MS = 60_000
"""Otherwise it is the session's: too short for a handshake on a busy machine."""

FATAL_LOG = {
    "log4j.rootLogger": "FATAL, out",
    "log4j.logger.kafka.server.KafkaServer": "ERROR",
    "log4j.appender.out": "org.apache.log4j.ConsoleAppender",
    "log4j.appender.out.layout": "org.apache.log4j.PatternLayout",
    "log4j.appender.out.layout.ConversionPattern": "%d %p %c: %m%n",
}
"""Errors of a failed start go to the output."""

SCRIPT_FLAGS = (
    *("-server", "-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
"""Flags that Apache's own start script adds: for benchmarks, where it should be at its best."""

PROTOCOL_MAP = (
    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
    "SASL_SSL:SASL_SSL"
)

STANDALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Keys that a single broker needs, of either make, with rebalances that start at once."""


def apache_4(
    directory: Path,
    properties: dict[str, str] | None = None,
    *,
    port: int | None = None,
    as_its_script_does: bool = False,
    version: str = jars.KAFKA_4,
) -> BrokerProcess:
    """Return a formatted, not yet started node of Apache Kafka 4, broker and controller.

    `listeners` among the properties are those for clients; `port` is then one of theirs. Its quorum
    is a static one, unless `controller.quorum.bootstrap.servers` says where it will be.
    """
    port = port or free_port()
    properties = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", **(properties or {})}
    listeners = properties["listeners"]
    dynamic = properties.get("controller.quorum.bootstrap.servers")
    controller = dynamic or f"127.0.0.1:{free_port()}"
    quorum = {} if dynamic else {"controller.quorum.voters": f"0@{controller}"}
    broker = BrokerProcess(name=f"Apache {version}", command=[], directory=directory, port=port)
    config = write_properties(
        directory / "server.properties",
        {
            "process.roles": "broker,controller",
            "node.id": "0",
            **quorum,
            "controller.listener.names": "CONTROLLER",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": PROTOCOL_MAP,
            "log.dirs": str(broker.data_directory),
            **STANDALONE,
            **properties,
            "listeners": f"{listeners},CONTROLLER://{controller}",
        },
    )
    flags = SCRIPT_FLAGS if as_its_script_does else SHORT_LIVED_FLAGS
    broker.command = java_command(version, "kafka.Kafka", str(config), flags=flags)
    cluster_id = urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    arguments = ["format", f"--cluster-id={cluster_id}", "--config", str(config)]
    if dynamic:
        arguments.append("--standalone")
    command = java_command(version, "kafka.tools.StorageTool", *arguments, heap=SMALL_HEAP)
    outcome = subprocess.run(
        command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_SECONDS, check=False
    )
    if outcome.returncode != 0:
        raise BrokerError(f"StorageTool failed: {outcome.stdout}{outcome.stderr}")
    return broker


class ZooKeeperCluster:
    """A ZooKeeper server and an Apache Kafka 3.9.1 broker that uses it."""

    def __init__(self, directory: Path, properties: dict[str, str] | None = None) -> None:
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.broker = apache_3(directory / "broker", self.zookeeper.port, properties or {})

    def start(self) -> None:
        """Start ZooKeeper, then the broker, and wait until it serves."""
        self.zookeeper.start()
        self.broker.start()

    def start_again(self) -> None:
        """Start the broker that has ended, as soon as its old session has: it dies before."""
        client = KazooClient(self.zookeeper.address)
        client.start()
        try:
            path = f"/brokers/ids/{BROKER_ID}"
            has_ended = wait_until(lambda: client.exists(path) is None, ZOOKEEPER_END_SECONDS)
            assert has_ended, "ZooKeeper keeps the session of a broker that is gone"
        finally:
            client.stop()
            client.close()
        self.broker.start()

    def stop(self) -> None:
        """Stop the broker cleanly, then ZooKeeper."""
        try:
            self.broker.stop()
        finally:
            self.zookeeper.kill()

    def kill(self) -> None:
        """End both at once."""
        self.broker.kill()
        self.zookeeper.kill()


def apache_3(
    directory: Path,
    zookeeper_port: int,
    properties: dict[str, str],
    *,
    port: int | None = None,
    as_its_script_does: bool = False,
) -> BrokerProcess:
    """Return an Apache Kafka 3.9.1 broker, not yet started, beside a ZooKeeper server."""
    port = port or free_port()
    broker = BrokerProcess(
        name=f"Apache {jars.KAFKA_3}", command=[], directory=directory, port=port
    )
    config = write_properties(
        directory / "server.properties",
        {
            "broker.id": str(BROKER_ID),
            "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            "zookeeper.session.timeout.ms": str(ZOOKEEPER_SESSION_MS),
            "zookeeper.connection.timeout.ms": str(ZOOKEEPER_CONNECTION_MS),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(broker.data_directory),
            **STANDALONE,
            **properties,
        },
    )
    flags = SCRIPT_FLAGS if as_its_script_does else SHORT_LIVED_FLAGS
    logged = write_properties(directory / "log4j.properties", FATAL_LOG)
    flags = (*flags, f"-Dlog4j.configuration={logged.absolute().as_uri()}")
    broker.command = java_command(jars.KAFKA_3, "kafka.Kafka", str(config), flags=flags)
    return broker
