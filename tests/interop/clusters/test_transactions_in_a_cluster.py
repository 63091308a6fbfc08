"""Transactions over three brokers of which one after the other is killed: all of each, or nothing.

Coordinators, and leaders of the partitions that they mark, are on different brokers, and move while
transactions are open, decided and being marked.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.clients.reading import ConfluentReader
from tests.interop.conftest import against_apache
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it is our brokers that are killed"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

TOPIC = "payments"
PARTITIONS = 6
PRODUCERS = 3
CALL_SECONDS = 120.0
QUIET_SECONDS = 2.0
KEYS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": "3000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    """Three brokers that run."""
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    zookeeper.start()
    address = {"zookeeper.connect": f"127.0.0.1:{zookeeper.port}"}
    brokers = [
        ours(tmp_path / f"broker-{number}", {**KEYS, **address, "broker.id": str(number)})
        for number in range(3)
    ]
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()
        zookeeper.kill()


class Client(threading.Thread):
    """Commits three transactions of four, and aborts the fourth, until it is stopped."""

    def __init__(self, bootstrap: str, number: int) -> None:
        super().__init__(name=f"client-{number}")
        self.committed: list[bytes] = []
        self.taken_back: list[bytes] = []
        self.failure: Exception | None = None
        self.is_stopped = threading.Event()
        self._number = number
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"client-{number}",
                "transaction.timeout.ms": 60_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        try:
            self._producer.init_transactions(CALL_SECONDS)
            for turn in itertools.count():
                if self.is_stopped.is_set():
                    return
                values = [b"%d-%d-%d" % (self._number, turn, i) for i in range(2 * PARTITIONS)]
                is_committed = self._try(values, is_commit=turn % 4 != 0)
                (self.committed if is_committed else self.taken_back).extend(values)
        except KafkaException as error:
            self.failure = error

    def _try(self, values: list[bytes], *, is_commit: bool) -> bool:
        """Return whether the transaction was committed; an abortable error aborts it."""
        producer = self._producer
        producer.begin_transaction()
        try:
            for place, value in enumerate(values):
                producer.produce(TOPIC, value, partition=place % PARTITIONS)
            producer.flush(CALL_SECONDS)
            if is_commit:
                patiently_end(producer)
                return True
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        producer.abort_transaction(CALL_SECONDS)
        return False


def patiently_end(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(CALL_SECONDS)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def test_each_transaction_is_seen_whole_or_not_at_all(cluster: list[BrokerProcess]) -> None:
    bootstrap = ",".join(broker.bootstrap for broker in cluster)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(CALL_SECONDS)
    clients = [Client(bootstrap, number) for number in range(PRODUCERS)]
    for client in clients:
        client.start()
    wait_for_more(clients)

    for broker in cluster:
        broker.kill()
        wait_for_more(clients)
        broker.start()
        wait_for_more(clients)
    for client in clients:
        client.is_stopped.set()
    for client in clients:
        client.join(2 * CALL_SECONDS)

    assert [client.failure for client in clients] == [None] * PRODUCERS
    committed = [value for client in clients for value in client.committed]
    assert sorted(read_all(bootstrap, len(committed))) == sorted(committed)
    assert any(client.taken_back for client in clients)


def wait_for_more(clients: list[Client]) -> None:
    """Every client has committed something since."""
    counts = [len(client.committed) for client in clients]
    deadline = time.monotonic() + CALL_SECONDS
    while any(len(c.committed) <= count for c, count in zip(clients, counts, strict=True)):
        assert time.monotonic() < deadline, [client.failure for client in clients]
        time.sleep(0.05)


def read_all(bootstrap: str, count: int) -> list[bytes]:
    """Read the committed records, then on for a moment, to see that there are no more."""
    reader = ConfluentReader(bootstrap, TOPIC, "auditors")
    values: list[bytes] = []
    deadline = time.monotonic() + CALL_SECONDS
    while time.monotonic() < deadline:
        was_complete = len(values) >= count
        values += (value for _, _, value in reader.poll(1000))
        if len(values) >= count and not was_complete:
            deadline = time.monotonic() + QUIET_SECONDS
    reader.close()
    return values
