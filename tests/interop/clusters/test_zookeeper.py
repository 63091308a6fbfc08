"""A broker of ours in ZooKeeper: what it writes there, and how it lives through its absence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import LONGEST_SESSION_MS, SHORTEST_SESSION_MS, ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

    StartBroker = Callable[..., BrokerProcess]

SHORT_SESSION_MS = 4000
WAIT_SECONDS = 120.0
POLL_SECONDS = 0.02
RETRIABLE = {KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_CONTROLLER}


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Return a running server."""
    server = ZooKeeperServer(tmp_path / "zookeeper")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def start(tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StartBroker]:
    """Start brokers of ours below one path of that server; all are gone after the test."""
    started: list[BrokerProcess] = []

    def start_one(session_ms: int, name: str = "broker") -> BrokerProcess:
        process = _broker(tmp_path / name, zookeeper, session_ms)
        started.append(process)
        process.start()
        return process

    yield start_one
    for process in started:
        process.kill()


@pytest.fixture
def nodes(zookeeper: ZooKeeperServer) -> Iterator[KazooClient]:
    """Return a client of ZooKeeper that sees what the broker sees."""
    client = KazooClient(f"{zookeeper.address}/kafka")
    assert client.start_async().wait(WAIT_SECONDS)
    yield client
    client.stop()
    client.close()


def _broker(
    directory: Path, zookeeper: ZooKeeperServer, session_ms: int, **more: str
) -> BrokerProcess:
    properties = {
        "zookeeper.connect": f"{zookeeper.address}/kafka",
        "zookeeper.session.timeout.ms": str(session_ms),
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return ours(directory, properties)


def _admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def _create(admin: AdminClient, name: str, timeout_seconds: float = 10.0) -> None:
    new = [NewTopic(name, num_partitions=1, replication_factor=1)]
    admin.create_topics(new, operation_timeout=timeout_seconds)[name].result()


def _topics(admin: AdminClient) -> set[str]:
    return set(admin.list_topics(timeout=WAIT_SECONDS).topics)


def _eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(POLL_SECONDS)


def _create_again_and_again(admin: AdminClient, name: str) -> None:
    """Create a topic as a client does that takes every retriable error for what it is."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            _create(admin, name)
        except KafkaException as problem:
            if problem.args[0].code() not in RETRIABLE or time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def _send(producer: Producer, topic: str, values: list[str]) -> None:
    failures: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(WAIT_SECONDS) == 0
    assert failures == [None] * len(values)


def _read(consumer: Consumer, count: int) -> list[str]:
    messages = consumer.consume(count, 10)
    return [(message.value() or b"").decode() for message in messages]


def test_clients_continue_without_zookeeper_and_refused_requests_are_not_done_later(
    start: StartBroker, zookeeper: ZooKeeperServer, nodes: KazooClient
) -> None:
    broker = start(LONGEST_SESSION_MS)
    admin = _admin(broker)
    _create(admin, "kept")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["kept"])
    _send(producer, "kept", ["before"])
    assert _read(consumer, 1) == ["before"]
    consumer.commit(asynchronous=False)
    epoch = nodes.get("/controller_epoch")[0]

    zookeeper.stop()
    _send(producer, "kept", ["while", "it", "is", "away"])
    assert _read(consumer, 4) == ["while", "it", "is", "away"]
    consumer.commit(asynchronous=False)
    for name in ("one", "two"):
        began = time.monotonic()
        with pytest.raises(KafkaException, match="Try again") as refused:
            _create(admin, name)
        assert refused.value.args[0].code() == KafkaError.REQUEST_TIMED_OUT
        assert time.monotonic() - began < WAIT_SECONDS

    zookeeper.start()
    _create_again_and_again(admin, "three")
    assert _topics(admin) - {"__consumer_offsets"} == {"kept", "three"}
    _eventually(lambda: nodes.connected)
    assert sorted(nodes.get_children("/brokers/topics")) == ["__consumer_offsets", "kept", "three"]
    assert nodes.get("/controller_epoch")[0] == epoch
    _send(producer, "three", ["after"])
    consumer.close()


def test_a_topic_whose_creation_was_refused_is_not_created_later(
    start: StartBroker, zookeeper: ZooKeeperServer
) -> None:
    broker = start(LONGEST_SESSION_MS)
    admin = _admin(broker)
    _create(admin, "first")
    zookeeper.freeze()
    with pytest.raises(KafkaException, match="The topic is not created; try again"):
        _create(admin, "late", timeout_seconds=1.0)
    zookeeper.thaw()
    _create_again_and_again(admin, "second")
    assert _topics(admin) == {"first", "second"}


def test_a_killed_broker_waits_for_its_previous_session_to_end(
    start: StartBroker, nodes: KazooClient
) -> None:
    broker = start(LONGEST_SESSION_MS)
    _create(_admin(broker), "kept")
    first = nodes.get("/brokers/ids/0")[1].czxid
    broker.kill()
    broker.launch()
    _eventually(lambda: "waiting for that session to end" in broker.output_tail())
    # As ZooKeeper does when it ends: a session short enough to be waited for here could be over
    # before a busy machine has started the broker.
    nodes.delete("/brokers/ids/0")
    nodes.delete("/controller")
    broker.wait_until_serving()
    assert nodes.get("/brokers/ids/0")[1].czxid > first
    assert "kept" in _topics(_admin(broker))
    assert broker.stop() == 0
    assert nodes.get_children("/brokers/ids") == []
    assert nodes.exists("/controller") is None


def test_a_broker_whose_session_expired_registers_again(
    start: StartBroker, nodes: KazooClient
) -> None:
    broker = start(SHORT_SESSION_MS)
    admin = _admin(broker)
    _create(admin, "kept")
    first, epoch = nodes.get("/brokers/ids/0")[1].czxid, int(nodes.get("/controller_epoch")[0])
    broker.freeze()
    _eventually(lambda: nodes.exists("/brokers/ids/0") is None)
    broker.thaw()
    _eventually(lambda: nodes.exists("/brokers/ids/0") is not None)
    assert nodes.get("/brokers/ids/0")[1].czxid > first
    _create_again_and_again(admin, "more")
    assert int(nodes.get("/controller_epoch")[0]) == epoch + 1
    _send(Producer({"bootstrap.servers": broker.bootstrap}), "kept", ["x"])
    assert nodes.get("/brokers/topics/kept/partitions/0/state")[0] == (
        b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    )


def test_id_of_a_broker_that_lives_is_refused_and_that_broker_left_alone(
    start: StartBroker, zookeeper: ZooKeeperServer, tmp_path: Path, nodes: KazooClient
) -> None:
    broker = start(LONGEST_SESSION_MS)
    before = nodes.get("/brokers/ids/0")
    twin = _broker(tmp_path / "twin", zookeeper, SHORTEST_SESSION_MS)
    twin.launch()
    assert twin.wait_until_ended() == 1
    assert f"registered by another broker as PLAINTEXT://{broker.bootstrap}" in twin.output_tail()
    assert nodes.get("/brokers/ids/0") == before


def test_an_unreachable_zookeeper_is_one_line_and_exit_code_1(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    zookeeper.kill()
    process = _broker(tmp_path / "broker", zookeeper, 4000, zookeeper_connection_timeout_ms="500")
    process.launch()
    assert process.wait_until_ended() == 1
    *_, first, last = process.output_tail().splitlines()
    assert f"connecting to ZooKeeper at {zookeeper.address}/kafka" in first
    assert f"ZooKeeper cannot be reached at {zookeeper.address}/kafka within 500 ms" in last


def test_start_that_waits_for_zookeeper_can_be_stopped(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    zookeeper.kill()
    process = _broker(tmp_path / "broker", zookeeper, LONGEST_SESSION_MS)
    process.launch()
    _eventually(process.data_directory.exists)
    time.sleep(1)
    began = time.monotonic()
    assert process.stop() == 0
    assert time.monotonic() - began < WAIT_SECONDS
    assert "stopped before" in process.output_tail()


def test_topics_left_from_standalone_operation_are_warned_of(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    alone = ours(tmp_path / "alone")
    alone.start()
    _create(_admin(alone), "mine")
    alone.stop()
    process = _broker(tmp_path / "alone", zookeeper, LONGEST_SESSION_MS)
    process.start()
    try:
        assert f"{alone.data_directory} holds topics of a broker without" in process.output_tail()
        assert _topics(_admin(process)) == set()
        assert (alone.data_directory / "mine-0").exists()
    finally:
        process.kill()
