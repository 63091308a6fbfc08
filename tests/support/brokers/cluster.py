"""Three brokers of ours and a ZooKeeper, whose links to each other can be cut.

Clients reach the brokers directly; what brokers ask each other, and what they ask ZooKeeper, goes
through a `CutLink` in front of each.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from protocol.headers import response_header_bytes
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support import wire
from tests.support.brokers.broker_process import BrokerProcess, free_port
from tests.support.brokers.cut_link import CutLink
from tests.support.brokers.ours import ours
from tests.support.brokers.skewed_broker import AHEAD
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

SESSION_MS = 3000
METADATA_VERSION = 7

KEYS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": str(SESSION_MS),
    "replica.socket.timeout.ms": str(SESSION_MS),
    "controller.socket.timeout.ms": str(SESSION_MS),
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}

PartitionState = tuple[int, frozenset[int], int]
"""Leader, in-sync replicas, number of replicas."""


class Member:
    """A broker, and the links to it and from it to ZooKeeper."""

    def __init__(self, directory: Path, number: int, zookeeper_port: int) -> None:
        internal = free_port()
        self.number = number
        self.link = CutLink(internal)
        """Link in front of the listener for brokers."""
        self.zookeeper_link = CutLink(zookeeper_port)
        port = free_port()
        client = f"CLIENT://127.0.0.1:{port}"
        self.process: BrokerProcess = ours(
            directory,
            {
                **KEYS,
                "broker.id": str(number),
                "zookeeper.connect": f"127.0.0.1:{self.zookeeper_link.port}",
                "listeners": f"{client},INTERNAL://127.0.0.1:{internal}",
                "advertised.listeners": f"{client},INTERNAL://127.0.0.1:{self.link.port}",
            },
            port=port,
        )

    def set_clock_ahead(self, milliseconds: int) -> None:
        """Set its wall clock ahead by so much, from its next start on."""
        command = self.process.command
        self.process.command = [
            *(sys.executable, "-m", "tests.support.brokers.skewed_broker"),
            *command[command.index("--config") :],
        ]
        self.process.environment[AHEAD] = str(milliseconds)

    def close(self) -> None:
        """End everything at once."""
        self.process.kill()
        self.link.close()
        self.zookeeper_link.close()


def told_by(port: int) -> dict[tuple[str, int], PartitionState]:
    """Return the state of all partitions by the broker on a port; empty without an answer."""
    request = wire.request_header(wire.METADATA, METADATA_VERSION)
    request += MetadataRequest(topics=None).encode(METADATA_VERSION)
    try:
        with wire.RawConnection.open(port) as connection:
            answer = connection.ask(request)
    except OSError:
        return {}
    start = response_header_bytes(wire.METADATA, METADATA_VERSION)
    decoded, _ = MetadataResponse.decode_from(METADATA_VERSION, memoryview(answer), start)
    return {
        (topic.name or "", one.partition_index): (
            one.leader_id,
            frozenset(one.isr_nodes),
            len(one.replica_nodes),
        )
        for topic in decoded.topics
        for one in topic.partitions
    }


class Cluster:
    """Use it as a context manager; it starts all, and kills all."""

    def __init__(self, directory: Path, size: int = 3) -> None:
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.members = [
            Member(directory / f"broker-{number}", number, self.zookeeper.port)
            for number in range(size)
        ]

    def __enter__(self) -> Self:
        try:
            self.zookeeper.start()
            for member in self.members:
                member.process.launch()
            for member in self.members:
                member.process.wait_until_serving()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            with suppress(OSError):
                member.close()
        self.zookeeper.kill()

    @property
    def bootstrap(self) -> str:
        """Return all brokers' addresses, as clients take them."""
        return ",".join(member.process.bootstrap for member in self.members)

    def ailments(self) -> list[str]:
        """List deviations: brokers that disagree, partitions without leader or out of sync."""
        told = [told_by(member.process.port) for member in self.members]
        found = []
        for member, said in zip(self.members, told, strict=True):
            if not said or said.keys() != told[0].keys():
                found.append(f"broker {member.number} tells of {len(said)} partitions")
            for at, state in said.items():
                leader, in_sync, size = state
                if leader < 0 or len(in_sync) != size or state != told[0].get(at):
                    found.append(f"broker {member.number}, {at}: led by {leader}, {set(in_sync)}")
        return found

    def log_bytes(self, topic: str, partition: int) -> list[bytes]:
        """Return each broker's log of a partition, all segments joined."""
        return [
            b"".join(
                file.read_bytes()
                for file in sorted(
                    (member.process.data_directory / f"{topic}-{partition}").glob("*.log")
                )
            )
            for member in self.members
        ]
