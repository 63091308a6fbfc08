"""Two brokers of one file: ordinary brokers to clients, across restarts of brokers or supervisor.

The producer is librdkafka's, with acks=all and idempotence.
"""

from __future__ import annotations

import re
import signal
import socket
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.conftest import against_apache
from tests.interop.workloads.steady_load import ConfluentLoad, Target
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.node import Node
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC = "steps"
PARTITIONS = 4
CALL_SECONDS = 60.0
HEALED_SECONDS = 240.0
LOADED = 500
"""Records that are acknowledged before, and after, something is done to the node."""

KEYS = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "min.insync.replicas": "1",
    "zookeeper.session.timeout.ms": "6000",
}

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="brokers of ours"),
    pytest.mark.java,
    pytest.mark.timeout(900),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def properties(zookeeper: ZooKeeperServer, tmp_path: Path) -> dict[str, str]:
    return {**KEYS, "zookeeper.connect": f"{zookeeper.address}/{tmp_path.name}"}


@pytest.fixture
def node(properties: dict[str, str], tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, properties) as node:
        node.launch()
        node.wait_until_serving()
        yield node


@pytest.fixture
def load(node: Node) -> Iterator[ConfluentLoad]:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 2)])[TOPIC].result(CALL_SECONDS)
    load = ConfluentLoad("load", node.bootstrap, Target(TOPIC, PARTITIONS, 500))
    load.start()
    yield load
    load.stop()


def goes_on(load: ConfluentLoad) -> bool:
    before = len(load.acknowledged)
    return wait_until(lambda: len(load.acknowledged) > before + LOADED, HEALED_SECONDS)


def is_whole(node: Node) -> bool:
    told = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=CALL_SECONDS)
    states = [one for topic in told.topics.values() for one in topic.partitions.values()]
    return len(told.brokers) == 2 and all(len(one.isrs) == len(one.replicas) for one in states)


def stored(node: Node) -> list[tuple[int, int, bytes]]:
    """Partition, offset and value of every record."""
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g", "log_level": 0})
    found: list[tuple[int, int, bytes]] = []
    try:
        for number in range(PARTITIONS):
            at = TopicPartition(TOPIC, number, 0)
            _, end = consumer.get_watermark_offsets(at, CALL_SECONDS)
            consumer.assign([at])
            while end and (not found or found[-1][:2] != (number, end - 1)):
                message = consumer.poll(CALL_SECONDS)
                assert message is not None
                assert message.error() is None
                value = message.value()
                assert value is not None
                found.append((number, message.offset() or 0, value))
    finally:
        consumer.close()
    return found


def check_nothing_is_lost_or_doubled(node: Node, load: ConfluentLoad) -> None:
    load.finish()
    assert load.failures == []
    found = stored(node)
    assert sorted(value for _, _, value in found) == sorted(v for _, _, v in load.acknowledged)
    for number in range(PARTITIONS):
        values = [value for partition, _, value in found if partition == number]
        assert values == sorted(values)


def test_brokers_are_restarted_one_by_one_while_records_come(
    node: Node, load: ConfluentLoad
) -> None:
    before = node.pids()
    assert goes_on(load)

    code, said = node.command("--rolling-restart")

    assert code == 0, said
    assert said.splitlines()[-1] == "all brokers were restarted"
    after = node.pids()
    assert None not in after.values()
    assert not set(before.values()) & set(after.values())
    assert node.restarts() == {0: 0, 1: 0}
    assert goes_on(load)
    check_nothing_is_lost_or_doubled(node, load)


def test_a_broker_that_is_killed_comes_back_once_and_nothing_is_lost(
    node: Node, load: ConfluentLoad
) -> None:
    assert goes_on(load)
    other = node.pid(0)
    node.kill_broker(1)
    assert goes_on(load)
    assert wait_until(lambda: node.restarts() == {0: 0, 1: 1}, HEALED_SECONDS)
    assert wait_until(lambda: is_whole(node), HEALED_SECONDS)
    assert node.pid(0) == other
    check_nothing_is_lost_or_doubled(node, load)


@pytest.mark.slow
def test_brokers_go_on_without_a_supervisor_and_the_next_one_finds_them(
    node: Node, load: ConfluentLoad
) -> None:
    brokers = node.pids()
    node.kill_supervisor()
    assert goes_on(load)
    node.kill_broker(1)  # nobody starts it again

    node.launch()
    node.wait_until_serving()

    assert node.pid(0) == brokers[0]
    assert node.pid(1) not in {None, brokers[1]}
    check_nothing_is_lost_or_doubled(node, load)
    assert node.stop() == 0
    assert node.pids() == {0: None, 1: None}


def test_a_second_supervisor_is_refused_and_the_first_one_goes_on(
    node: Node, properties: dict[str, str]
) -> None:
    code, said = node.command()
    assert code == 1
    assert "supervises these brokers already" in said
    assert node.command("--status")[0] == 0


def test_an_invalid_file_stops_a_rolling_restart(node: Node, tmp_path: Path) -> None:
    before = node.pids()
    with (tmp_path / "node.properties").open("a") as file:
        file.write("num.partitions=none\n")
    # The command refuses by itself, so whoever sends the signal is told by the log and the status.
    assert node.command("--rolling-restart")[0] == 1
    node.signal(signal.SIGUSR1)
    assert wait_until(lambda: "rolling restart given up: " in node.output_tail(), CALL_SECONDS)
    assert "Invalid value none for configuration num.partitions" in node.output_tail()
    assert node.pids() == before
    assert node.stop() == 0


def test_no_broker_is_restarted_while_zookeeper_is_unreachable(
    zookeeper: ZooKeeperServer, properties: dict[str, str], tmp_path: Path
) -> None:
    """A broker could not start again, and none knows which replicas are in sync."""
    with Node(tmp_path, {**properties, "broker.processes.sync.timeout.ms": "1000"}) as node:
        node.launch()
        node.wait_until_serving()
        before = node.pids()
        zookeeper.kill()
        try:
            lost = "ZooKeeper connection lost"
            assert wait_until(lambda: node.output_tail().count(lost) == 2, CALL_SECONDS)
            code, said = node.command("--rolling-restart")
        finally:
            zookeeper.start()
        assert (code, said.splitlines()[-1]) == (1, "broker 0 cannot reach ZooKeeper, after 1 s")
        assert node.pids() == before


def test_a_broker_whose_port_is_taken_is_tried_again_until_it_is_free(
    properties: dict[str, str], tmp_path: Path
) -> None:
    quick = {"broker.processes.restart.backoff.ms": "100"}
    with Node(tmp_path, {**properties, **quick}) as node:
        with socket.create_server(("127.0.0.1", node.port_of(1))):
            node.launch()
            again = "broker 1 is started again in 200 ms (failure 2 in a row)"
            assert wait_until(lambda: again in node.output_tail(), HEALED_SECONDS)
            why = rf"broker 1 \| .*:{node.port_of(1)} is already in use"
            assert re.search(why, node.output_tail())
            assert node.command("--status")[0] == 1
        node.wait_until_serving()


def test_a_node_stops_in_turn_and_leaves_clean_directories(node: Node, tmp_path: Path) -> None:
    assert node.stop() == 0
    marks = [tmp_path / "data" / f"broker{n}" / ".kafka_cleanshutdown" for n in node.ids]
    assert all(mark.exists() for mark in marks)
    output = node.output_tail()
    assert output.index("broker 1 | ", output.index("SIGTERM")) < output.rindex("broker 0 | ")
    whose = {line.partition(" | ")[0] for line in output.splitlines()}
    assert whose == {"node", "broker 0", "broker 1"}
    assert node.command("--status")[0] == 1


def test_one_endpoint_serves_the_metrics_of_all_brokers(
    properties: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    with Node(tmp_path, {**properties, "metrics.port": str(port)}) as node:
        node.launch()
        node.wait_until_serving()
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=CALL_SECONDS) as page:
            text = page.read().decode()
        for broker in ("0", "1"):
            assert f'node_broker_up{{broker="{broker}"}} 1' in text
            assert f'kafka_server_replicamanager_leadercount{{broker="{broker}"}}' in text
        process_of_one = 'process_resident_memory_bytes{broker="1"}'
        assert process_of_one in text


def test_replicas_go_to_different_machines(properties: dict[str, str], tmp_path: Path) -> None:
    """Racks stand for machines: each of two nodes has one replica of each partition."""
    racks = {"a": range(2), "b": range(2, 4)}
    first = Node(tmp_path / "a", {**properties, "broker.rack": "a"})
    second = Node(tmp_path / "b", {**properties, "broker.rack": "b"}, first_id=2)
    with first, second:
        for node in (first, second):
            node.launch()
        for node in (first, second):
            node.wait_until_serving()
        admin = AdminClient({"bootstrap.servers": first.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 16, 2)])[TOPIC].result(CALL_SECONDS)
        partitions = admin.list_topics(TOPIC, CALL_SECONDS).topics[TOPIC].partitions.values()
        for partition in partitions:
            machines = {rack for rack, ids in racks.items() for r in partition.replicas if r in ids}
            assert machines == {"a", "b"}
        leaders = [partition.leader for partition in partitions]
        assert sorted(map(leaders.count, range(4))) == [4, 4, 4, 4]


def test_clients_see_the_machines_name_as_the_rack(node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    told = admin.describe_cluster().result(CALL_SECONDS)
    assert {one.id: one.rack for one in told.nodes} == dict.fromkeys(node.ids, socket.gethostname())
