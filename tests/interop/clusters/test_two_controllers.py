"""A controller that was frozen past its session finds another in office, and lets it be."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

SESSION_MS = 4000
WAIT_SECONDS = 180.0
POLL_SECONDS = 0.05
PARTITIONS = 4


class Pair:
    """Two brokers of ours and what ZooKeeper knows of them."""

    def __init__(self, brokers: list[BrokerProcess], nodes: KazooClient) -> None:
        self.brokers = brokers
        self.nodes = nodes

    @property
    def controller(self) -> int | None:
        """Id of who is in office."""
        try:
            return int(json.loads(self.nodes.get("/controller")[0])["brokerid"])
        except NoNodeError:
            return None

    @property
    def epoch(self) -> int:
        """The controller epoch."""
        return int(self.nodes.get("/controller_epoch")[0])

    def states(self, topic: str) -> list[dict[str, Any]]:
        """The stored state of each partition of a topic."""
        paths = [f"/brokers/topics/{topic}/partitions/{each}/state" for each in range(PARTITIONS)]
        return [json.loads(self.nodes.get(path)[0]) for path in paths]

    def create(self, topic: str) -> None:
        """Create a topic on both brokers, at either controller."""
        bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, PARTITIONS, 2)])[topic].result(WAIT_SECONDS)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Return two running brokers."""
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    zookeeper.start()
    brokers = [
        ours(
            tmp_path / f"broker-{broker_id}",
            {
                "broker.id": str(broker_id),
                "zookeeper.connect": zookeeper.address,
                "zookeeper.session.timeout.ms": str(SESSION_MS),
            },
        )
        for broker_id in (0, 1)
    ]
    nodes = KazooClient(zookeeper.address)
    try:
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.wait_until_serving()
        nodes.start()
        yield Pair(brokers, nodes)
    finally:
        nodes.stop()
        nodes.close()
        for broker in brokers:
            broker.kill()
        zookeeper.kill()


def _eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(POLL_SECONDS)


def test_a_frozen_controller_is_fenced_when_it_resumes(pair: Pair) -> None:
    old = pair.controller
    assert old is not None
    other = 1 - old
    pair.create("before")
    epoch = pair.epoch

    pair.brokers[old].freeze()
    _eventually(lambda: pair.controller == other)
    _eventually(lambda: all(state["leader"] == other for state in pair.states("before")))
    pair.brokers[old].thaw()
    _eventually(lambda: all(len(state["isr"]) == 2 for state in pair.states("before")))

    assert (pair.controller, pair.epoch) == (other, epoch + 1)
    assert {state["leader"] for state in pair.states("before")} == {other}
    assert all(state["controller_epoch"] == epoch + 1 for state in pair.states("before"))
    pair.create("after")
    assert {state["controller_epoch"] for state in pair.states("after")} == {epoch + 1}
    producer = Producer({"bootstrap.servers": pair.brokers[old].bootstrap, "acks": "all"})
    failures: list[object] = []
    for topic in ("before", "after"):
        for partition in range(PARTITIONS):
            producer.produce(
                topic,
                b"x",
                partition=partition,
                on_delivery=lambda error, _: failures.append(error),
            )
    assert producer.flush(WAIT_SECONDS) == 0
    assert failures == [None] * 2 * PARTITIONS
