"""Two places for brokers in one ZooKeeper cluster; each is taken by ours or by Apache Kafka 3.9.1.

A place is a broker id, a port and a data directory. Whoever takes it next goes on with the data
that the one before left there, whatever make that was.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.support.brokers.apache import ZOOKEEPER_SESSION_MS, apache_3
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until
from tests.support.security.listeners import Ports, listener_keys
from tests.support.security.realm import ADMIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.support.security.access import Access
    from tests.support.security.realm import Realm

    Fingerprint = dict[str, tuple[int, str]]

APACHE = "apache"
OURS = "ours"
WAIT_SECONDS = 180.0
STOPPED_IN_ORDER = {0, 143}
"""Exit codes after SIGTERM: of ours, of a JVM."""

KEYS = {
    "zookeeper.session.timeout.ms": str(ZOOKEEPER_SESSION_MS),
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.num.partitions": "4",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
}
"""The same for both makes."""

SECURED_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECURED_KEYS = {
    "inter.broker.listener.name": "SASL_SSL",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"User:{ADMIN};User:ANONYMOUS",
}
"""The same for both makes, in a cluster with a realm."""


class Place:
    """A broker id and what belongs to it."""

    def __init__(
        self, broker_id: int, directory: Path, zookeeper: ZooKeeperServer, realm: Realm | None
    ) -> None:
        self.broker_id = broker_id
        self.data_directory = directory / "data"
        self.ports = Ports.free()
        port = self.ports.plaintext
        properties = {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self.data_directory),
            "zookeeper.connect": zookeeper.address,
            **KEYS,
        }
        if realm is not None:
            properties |= {**listener_keys(realm, self.ports, SECURED_MECHANISMS), **SECURED_KEYS}
        self._takers = {
            APACHE: apache_3(directory / APACHE, zookeeper.port, properties, port=port),
            OURS: ours(directory / OURS, properties, port=port),
        }
        self.broker = self._takers[OURS]

    def take(self, make: str) -> None:
        """Start a broker of this make here, and wait until it serves."""
        self.broker = self._takers[make]
        self.broker.start()

    def leave(self) -> None:
        """Stop the broker as an operator does."""
        assert self.broker.stop() in STOPPED_IN_ORDER

    def kill(self) -> None:
        """Kill the broker here, if any."""
        for taker in self._takers.values():
            taker.kill()

    def logs(self) -> Fingerprint:
        """Size and digest of the log of each partition, all segments together."""
        found: Fingerprint = {}
        for directory in self.data_directory.iterdir():
            if (directory / "partition.metadata").exists() and "-delete" not in directory.name:
                content = b"".join(file.read_bytes() for file in sorted(directory.glob("*.log")))
                found[directory.name] = len(content), sha256(content).hexdigest()
        return found


class MixedCluster:
    """ZooKeeper, and the places, which have no brokers at first.

    With a realm, brokers speak SASL_SSL to each other and have an authorizer, to which the tests
    themselves, on PLAINTEXT, are super users.
    """

    def __init__(self, directory: Path, realm: Realm | None = None) -> None:
        self._zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.places = [
            Place(number, directory / str(number), self._zookeeper, realm) for number in range(2)
        ]
        self.nodes = KazooClient(self._zookeeper.address)

    @property
    def bootstrap(self) -> str:
        """Return both places' addresses."""
        return ",".join(place.broker.bootstrap for place in self.places)

    def bootstrap_of(self, access: Access) -> str:
        """Return both places' addresses for clients with this access."""
        return ",".join(place.ports.bootstrap(access.protocol) for place in self.places)

    def admin(self) -> AdminClient:
        """Return a client that finds either broker; keep it until it has answered."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    @property
    def controller(self) -> int | None:
        """The id of who is in office."""
        try:
            return int(json.loads(self.nodes.get("/controller")[0])["brokerid"])
        except NoNodeError:
            return None

    def start(self) -> None:
        """Start ZooKeeper."""
        self._zookeeper.start()
        self.nodes.start()

    def kill(self) -> None:
        """End everything."""
        self.nodes.stop()
        self.nodes.close()
        for place in self.places:
            place.kill()
        self._zookeeper.kill()

    def create(self, topic: str, assignment: list[list[int]], **config: str) -> None:
        """Create a topic whose partitions have these replicas."""
        new = NewTopic(topic, len(assignment), replica_assignment=assignment, config=config)
        admin = self.admin()
        admin.create_topics([new])[topic].result(WAIT_SECONDS)
        self.eventually(lambda: len(self.states(topic)) == len(assignment))

    def topics(self) -> list[str]:
        """Return all topics, including internal ones."""
        return sorted(self.nodes.get_children("/brokers/topics"))

    def assignment(self, topic: str) -> list[list[int]]:
        """The replicas of each partition."""
        partitions = json.loads(self.nodes.get(f"/brokers/topics/{topic}")[0])["partitions"]
        return [partitions[number] for number in sorted(partitions, key=int)]

    def states(self, topic: str) -> list[dict[str, Any]]:
        """The stored state of each partition that has one."""
        below = f"/brokers/topics/{topic}/partitions"
        if self.nodes.exists(below) is None:
            return []
        paths = [
            f"{below}/{each}/state" for each in sorted(self.nodes.get_children(below), key=int)
        ]
        return [json.loads(self.nodes.get(path)[0]) for path in paths if self.nodes.exists(path)]

    def reassign(self, topic: str, assignment: list[list[int]]) -> None:
        """Give partitions other replicas, and wait until that is done."""
        partitions = [
            {"topic": topic, "partition": number, "replicas": replicas}
            for number, replicas in enumerate(assignment)
        ]
        wanted = json.dumps({"version": 1, "partitions": partitions}).encode()
        self.nodes.create("/admin/reassign_partitions", wanted)
        self.eventually(lambda: self.nodes.exists("/admin/reassign_partitions") is None)
        assert self.assignment(topic) == assignment
        self.wait_until_in_sync([topic])

    def prefer(self) -> None:
        """Elect the first replica of each partition."""
        wanted = [
            TopicPartition(topic, number)
            for topic in self.topics()
            for number in range(len(self.states(topic)))
        ]
        admin = self.admin()
        admin.elect_leaders(ElectionType.PREFERRED, wanted).result(WAIT_SECONDS)
        for topic in self.topics():
            preferred = [replicas[0] for replicas in self.assignment(topic)]
            self.eventually(lambda: self.leaders(topic) == preferred)  # noqa: B023

    def leaders(self, topic: str) -> list[int]:
        """Return the leader of each partition."""
        return [state["leader"] for state in self.states(topic)]

    def wait_until_in_sync(self, topics: Iterable[str] = ()) -> None:
        """Wait until all replicas are in sync."""
        for topic in topics or self.topics():
            wanted = [set(replicas) for replicas in self.assignment(topic)]
            self.eventually(lambda: [set(at["isr"]) for at in self.states(topic)] == wanted)  # noqa: B023

    def wait_until_led_by(self, broker_id: int) -> None:
        """Wait until one broker leads all there is, and is controller."""
        self.eventually(lambda: self.controller == broker_id)
        for topic in self.topics():
            self.eventually(lambda: set(self.leaders(topic)) == {broker_id})  # noqa: B023

    def wait_until_equal(self) -> None:
        """Wait until both places hold the same bytes, once all writes have ended."""
        one, other = self.places
        if not wait_until(lambda: one.logs() == other.logs(), WAIT_SECONDS):
            mine, theirs = one.logs(), other.logs()
            different = {
                name: (mine.get(name), theirs.get(name))
                for name in mine.keys() | theirs.keys()
                if mine.get(name) != theirs.get(name)
            }
            raise AssertionError(f"logs that differ: {different}")

    def eventually(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds; the error has the brokers' output."""
        if not wait_until(condition, WAIT_SECONDS):
            said = "\n".join(place.broker.output_tail() for place in self.places)
            raise AssertionError(f"it did not come to pass:\n{said}")
