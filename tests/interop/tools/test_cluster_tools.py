"""Kafka's tools on three brokers with ZooKeeper: topics, moves, elections, settings.

With `AGAINST=apache` the brokers are Apache Kafka 3.9.1, to which all of this is true as well.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import against_apache, eventually
from tests.interop.tools.test_topic_tools import partition_lines
from tests.support.brokers.apache import apache_3
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.interop.conftest import NewName
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

pytestmark = pytest.mark.slow

SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "auto.leader.rebalance.enable": "false",
    "leader.imbalance.check.interval.seconds": "3600",
}
SIZE = 3
THROTTLED_BYTES = 200_000


class Trio(NamedTuple):
    """Three brokers, and a client of their ZooKeeper."""

    brokers: list[BrokerProcess]
    zookeeper: KazooClient

    @property
    def server(self) -> tuple[str, str]:
        """Return the bootstrap arguments of the tools."""
        return ("--bootstrap-server", ",".join(one.bootstrap for one in self.brokers))

    def only(self, broker_id: int) -> tuple[str, str]:
        """The same, with one broker to begin with."""
        return ("--bootstrap-server", self.brokers[broker_id].bootstrap)

    def znode(self, path: str) -> Any:
        """Return a znode's content, parsed as JSON; None without one."""
        if self.zookeeper.exists(path) is None:
            return None
        return json.loads(self.zookeeper.get(path)[0] or b"null")

    @property
    def controller(self) -> int:
        """Return the id of the controller."""
        return int(self.znode("/controller")["brokerid"])

    def state(self, topic: str, partition: int) -> tuple[int, list[int]]:
        """Leader and in-sync replicas."""
        found = self.znode(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return found["leader"], found["isr"]


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Return three brokers, in a rack each, that the tests of this file share."""
    directory = tmp_path_factory.mktemp("trio")
    zookeeper = ZooKeeperServer(directory / "zookeeper")
    with ExitStack() as stack:
        stack.callback(zookeeper.kill)
        zookeeper.start()
        brokers = []
        for number in range(SIZE):
            own = {"broker.id": str(number), "broker.rack": f"rack-{number}"}
            keys = {**SETTINGS, **own, "zookeeper.connect": zookeeper.address}
            place = directory / f"broker-{number}"
            broker = (
                apache_3(place, zookeeper.port, keys) if against_apache() else ours(place, keys)
            )
            stack.callback(broker.kill)
            brokers.append(broker)
            broker.launch()
        for broker in brokers:
            broker.wait_until_serving()
        client = KazooClient(zookeeper.address)
        client.start()
        stack.callback(client.close)
        stack.callback(client.stop)
        yield Trio(brokers, client)


@pytest.fixture
def topic(new_name: NewName) -> str:
    return new_name("cluster-topic")


def create(tools: Tools, trio: Trio, topic: str, *options: str) -> None:
    tools.check("topics", "--create", *trio.server, "--topic", topic, *options)


def described(tools: Tools, trio: Trio, topic: str, broker_id: int) -> list[dict[str, str]]:
    """Describe a topic at one broker; empty while its metadata cache lacks the topic."""
    return partition_lines(
        tools.run("topics", "--describe", *trio.only(broker_id), "--topic", topic)
    )


def plan(path: Path, topic: str, *moves: list[int]) -> str:
    """A file for kafka-reassign-partitions, one partition after the other."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": replicas}
        for index, replicas in enumerate(moves)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_a_topic_of_three_by_three_is_the_same_at_every_broker(
    tools: Tools, trio: Trio, topic: str
) -> None:
    create(tools, trio, topic, "--partitions", "3", "--replication-factor", "3")

    for broker_id in range(SIZE):
        eventually(lambda: len(described(tools, trio, topic, broker_id)) == SIZE)  # noqa: B023
        lines = described(tools, trio, topic, broker_id)
        assert {line["Leader"] for line in lines} == {"0", "1", "2"}
        for line in lines:
            assert sorted(line["Replicas"]) == sorted(line["Isr"])
            assert line["Replicas"].startswith(line["Leader"])
    assert list(trio.znode(f"/brokers/topics/{topic}")) == [
        *("partitions", "topic_id", "adding_replicas", "removing_replicas", "version")
    ]
    assert list(trio.znode(f"/brokers/topics/{topic}/partitions/0/state")) == [
        *("controller_epoch", "leader", "version", "leader_epoch", "isr")
    ]

    tools.check("topics", "--alter", *trio.server, "--topic", topic, "--partitions", "4")
    eventually(lambda: len(described(tools, trio, topic, 0)) == SIZE + 1)
    tools.check("topics", "--delete", *trio.server, "--topic", topic)
    eventually(lambda: trio.znode(f"/brokers/topics/{topic}") is None)


def test_a_topics_configuration_is_known_to_brokers_without_a_replica(
    tools: Tools, trio: Trio, topic: str
) -> None:
    create(tools, trio, topic, "--replica-assignment", "1", "--config", "retention.ms=4000000")
    on_topic = ("--entity-type", "topics", "--entity-name", topic)

    def shown(broker_id: int) -> str:
        return tools.check("configs", "--describe", *trio.only(broker_id), *on_topic).output

    eventually(lambda: all("retention.ms=4000000" in shown(one) for one in range(SIZE)))
    tools.check(
        *("configs", "--alter", *trio.only(2), *on_topic, "--add-config", "retention.ms=5000000")
    )
    eventually(lambda: all("retention.ms=5000000" in shown(one) for one in range(SIZE)))
    changes = trio.zookeeper.get_children("/config/changes")
    newest = trio.znode(f"/config/changes/{max(changes)}")
    assert newest == {"version": 2, "entity_path": f"topics/{topic}"}


def test_brokers_are_configured_one_by_one_and_together(tools: Tools, trio: Trio) -> None:
    def alter(*words: str) -> None:
        tools.check("configs", "--alter", *trio.server, "--entity-type", "brokers", *words)

    def shown(broker_id: int) -> str:
        line = next(
            line
            for line in tools.check(
                *("configs", "--describe", "--all", *trio.server),
                *("--entity-type", "brokers", "--entity-name", str(broker_id)),
            ).lines
            if line.strip().startswith("log.retention.ms=")
        )
        return re.sub(r" sensitive=\w+", "", line.strip())

    alter("--entity-default", "--add-config", "log.retention.ms=7000000")
    eventually(lambda: "=7000000 " in shown(2))
    alter("--entity-name", "1", "--add-config", "log.retention.ms=8000000,log.cleaner.threads=2")
    eventually(lambda: "=8000000 " in shown(1))
    assert shown(1) == (
        "log.retention.ms=8000000 synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=8000000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7000000, "
        "DEFAULT_CONFIG:log.retention.hours=168}"
    )
    assert trio.znode("/config/brokers/<default>") == {
        "version": 1,
        "config": {"log.retention.ms": "7000000"},
    }
    assert trio.znode("/config/brokers/1")["config"]["log.cleaner.threads"] == "2"

    refused = tools.run(
        *("configs", "--alter", *trio.server, "--entity-type", "brokers", "--entity-name", "0"),
        *("--add-config", "num.partitions=5"),
    )
    assert "Cannot update these configs dynamically" in refused.output + refused.errors

    alter("--entity-name", "1", "--delete-config", "log.retention.ms,log.cleaner.threads")
    alter("--entity-default", "--delete-config", "log.retention.ms")
    eventually(lambda: "log.retention.ms=null" in shown(1))
    assert trio.znode("/config/brokers/1") == {"version": 1, "config": {}}


def test_a_throttled_move_is_listed_called_off_done_and_verified(
    tools: Tools, trio: Trio, topic: str, tmp_path: Path
) -> None:
    create(tools, trio, topic, "--replica-assignment", "0:1")
    servers = trio.server[1]
    confluent.produce(servers, topic, numbered_records(60, size=50_000), Sending())
    moves = plan(tmp_path / "moves.json", topic, [1, 2])
    files = ("--reassignment-json-file", moves)

    begun = tools.check(
        *("reassign-partitions", *trio.server, "--execute", *files),
        *("--throttle", str(THROTTLED_BYTES)),
    )
    assert "Successfully started partition reassignment" in begun.output
    rates = {
        "leader.replication.throttled.rate": str(THROTTLED_BYTES),
        "follower.replication.throttled.rate": str(THROTTLED_BYTES),
    }
    for broker_id in range(SIZE):
        assert trio.znode(f"/config/brokers/{broker_id}")["config"] == rates
    assert trio.znode(f"/config/topics/{topic}")["config"] == {
        "leader.replication.throttled.replicas": "0:0,0:1",
        "follower.replication.throttled.replicas": "0:2",
    }
    listed = tools.check("reassign-partitions", *trio.server, "--list").output
    assert f"{topic}-0: replicas: 1,2,0. adding: 2. removing: 0." in listed
    assert trio.znode(f"/brokers/topics/{topic}")["adding_replicas"] == {"0": [2]}

    tools.check("reassign-partitions", *trio.server, "--cancel", *files)
    # As in Apache Kafka, who was to be preferred stays so.
    assert trio.znode(f"/brokers/topics/{topic}")["partitions"] == {"0": [1, 0]}

    tools.check(
        *("reassign-partitions", *trio.server, "--execute", *files, "--throttle", "50000000")
    )
    eventually(lambda: trio.state(topic, 0)[0] == 1 and 0 not in trio.state(topic, 0)[1])
    verified = tools.check("reassign-partitions", *trio.server, "--verify", *files).output
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert trio.znode(f"/brokers/topics/{topic}")["partitions"] == {"0": [1, 2]}
    for broker_id in range(SIZE):
        eventually(lambda: trio.znode(f"/config/brokers/{broker_id}")["config"] == {})  # noqa: B023
    assert trio.znode(f"/config/topics/{topic}") == {"version": 1, "config": {}}

    Path(moves).write_text(begun.output.split("assignment\n\n")[1].splitlines()[0])
    tools.check("reassign-partitions", *trio.server, "--execute", *files)  # back, as it was told to
    eventually(lambda: sorted(trio.state(topic, 0)[1]) == [0, 1])


def test_moves_and_elections_that_are_written_into_the_tree_are_done(
    tools_3: Tools, trio: Trio, topic: str
) -> None:
    create(tools_3, trio, topic, "--replica-assignment", "0:1")
    zookeeper = trio.zookeeper

    zookeeper.create(
        "/admin/reassign_partitions",
        json.dumps(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": 0, "replicas": [2, 0]},
                    {"topic": "no-such-topic", "partition": 0, "replicas": [1]},
                ],
            }
        ).encode(),
    )
    eventually(lambda: zookeeper.exists("/admin/reassign_partitions") is None)
    assert trio.znode(f"/brokers/topics/{topic}")["partitions"] == {"0": [2, 0]}
    assert sorted(trio.state(topic, 0)[1]) == [0, 2]

    zookeeper.create(
        "/admin/preferred_replica_election",
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0}]}).encode(),
    )
    eventually(lambda: zookeeper.exists("/admin/preferred_replica_election") is None)
    assert trio.state(topic, 0)[0] == 2


def test_leaders_are_elected_and_a_deletion_waits_for_a_dead_broker(
    tools: Tools, trio: Trio, topic: str
) -> None:
    victim = (trio.controller + 1) % SIZE
    other = (trio.controller + 2) % SIZE
    create(tools, trio, topic, "--replica-assignment", f"{victim}:{other}")
    alone = f"{topic}-alone"
    create(tools, trio, alone, "--replica-assignment", str(victim))
    doomed = f"{topic}-doomed"
    create(tools, trio, doomed, "--replica-assignment", f"{victim}:{other}")
    trio.brokers[victim].kill()
    eventually(lambda: trio.state(topic, 0) == (other, [other]))
    eventually(lambda: trio.state(alone, 0) == (-1, [victim]))

    tools.check("topics", "--delete", *trio.only(other), "--topic", doomed)
    assert trio.zookeeper.exists(f"/admin/delete_topics/{doomed}") is not None
    none = tools.run(
        *("leader-election", *trio.only(other), "--election-type", "unclean"),
        *("--topic", alone, "--partition", "0"),
    )
    assert none.exit_code == 1

    trio.brokers[victim].start()
    eventually(lambda: sorted(trio.state(topic, 0)[1]) == sorted([victim, other]))
    eventually(lambda: trio.zookeeper.exists(f"/brokers/topics/{doomed}") is None)
    assert trio.state(topic, 0)[0] == other
    elected = tools.check(
        *("leader-election", *trio.server, "--election-type", "preferred"),
        *("--topic", topic, "--partition", "0"),
    )
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in (
        elected.output
    )
    assert trio.state(topic, 0)[0] == victim


def test_an_unclean_leader_is_elected_when_it_is_asked_for(
    tools_3: Tools, trio: Trio, topic: str
) -> None:
    first, second = (trio.controller + 1) % SIZE, (trio.controller + 2) % SIZE
    create(tools_3, trio, topic, "--replica-assignment", f"{first}:{second}")
    trio.brokers[second].kill()
    eventually(lambda: trio.state(topic, 0) == (first, [first]))
    trio.brokers[first].kill()
    eventually(lambda: trio.state(topic, 0) == (-1, [first]))
    trio.brokers[second].start()
    assert trio.state(topic, 0) == (-1, [first])

    tools_3.check(
        *("leader-election", *trio.only(second), "--election-type", "unclean"),
        *("--topic", topic, "--partition", "0"),
    )
    eventually(lambda: trio.state(topic, 0) == (second, [second]))
    trio.brokers[first].start()
    eventually(lambda: sorted(trio.state(topic, 0)[1]) == sorted([first, second]))


def test_admin_requests_find_the_controller_and_every_broker_answers(
    tools: Tools, trio: Trio, topic: str
) -> None:
    create(tools, trio, topic, "--partitions", "3", "--replication-factor", "2")
    versions = tools.check("broker-api-versions", *trio.server).output
    assert versions.count("(id: ") == SIZE
    assert "UNSUPPORTED" not in re.sub(r"\(.*?\)", "", versions.split("\n", maxsplit=1)[0])

    told = tools.check("log-dirs", *trio.server, "--describe", "--topic-list", topic).output
    found = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    held = [
        (broker["broker"], partition["partition"])
        for broker in found["brokers"]
        for directory in broker["logDirs"]
        for partition in directory["partitions"]
    ]
    assert len(held) == len(set(held)) == 2 * 3
    for broker_id in range(SIZE):
        admin = AdminClient({"bootstrap.servers": trio.brokers[broker_id].bootstrap})
        cluster = admin.describe_cluster().result(120)
        assert cluster.controller.id == trio.controller
        assert len(cluster.nodes) == SIZE


def test_groups_are_seen_from_every_broker(tools_3: Tools, trio: Trio, topic: str) -> None:
    create(tools_3, trio, topic, "--partitions", "3", "--replication-factor", "3")
    servers = trio.server[1]
    for partition in range(SIZE):
        confluent.produce(servers, topic, numbered_records(10, partition), Sending())
    group = f"{topic}-readers"
    tools_3.check(
        *("consumer-groups", *trio.server, "--group", group, "--topic", topic),
        *("--reset-offsets", "--to-latest", "--execute"),
    )
    for broker_id in range(SIZE):
        listed = tools_3.check("consumer-groups", *trio.only(broker_id), "--list").lines
        assert group in listed
        shown = tools_3.check(
            "consumer-groups", *trio.only(broker_id), "--describe", "--group", group
        )
        assert len([line for line in shown.lines if topic in line.split()]) == SIZE
