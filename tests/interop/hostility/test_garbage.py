"""Requests leave no garbage cycles behind for the collector.

The cycles of many requests are collected at once, while all clients wait: 60 ms every few seconds
was one record in a hundred of a quiet cluster.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop.conftest import ADMIN_TIMEOUT_SECONDS, against_apache
from tests.support.brokers.cluster import Cluster
from tests.support.brokers.garbage_broker import FILE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(against_apache(), reason="it is our broker's memory")

TOPIC = "garbage"
ROUNDS = 200
FEW = ROUNDS // 4
"""Under way when a broker stops; what each round left would be four times as much."""

OF_REQUESTS = (
    *("Deferred", "DelayedFetch", "DelayedProduce", "FetchRead", "Countdown", "Verification"),
    *("FetchRequest", "FetchResponse", "ProduceRequest", "OffsetCommitRequest", "EndTxnRequest"),
)


@pytest.mark.slow
def test_requests_are_freed_with_their_answers(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for member in cluster.members:
        command = member.process.command
        module = command.index("-m") + 1
        command[module] = "tests.support.brokers.garbage_broker"
        member.process.environment[FILE] = str(tmp_path / f"{member.number}.json")
    with cluster:
        _work(cluster.bootstrap)
        for member in cluster.members:
            assert member.process.stop() == 0, member.process.output_tail()
    left = [json.loads((tmp_path / f"{m.number}.json").read_text()) for m in cluster.members]
    assert any(left), "something is always garbage when a broker has ended"
    for name in OF_REQUESTS:
        assert all(counts.get(name, 0) < FEW for counts in left), (name, left)


def _work(bootstrap: str) -> None:
    """Produce, wait for the record and commit; then the same in transactions."""
    settings = {"bootstrap.servers": bootstrap}
    producer = Producer({**settings, "linger.ms": 0})
    consumer = Consumer({**settings, "group.id": TOPIC, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    for number in range(ROUNDS):
        producer.produce(TOPIC, str(number).encode())
        assert producer.flush(120) == 0
        assert _next_value(consumer) == str(number).encode()
        consumer.commit(asynchronous=False)
    consumer.close()
    writer = Producer({**settings, "transactional.id": TOPIC, "linger.ms": 0})
    writer.init_transactions(30)
    for number in range(ROUNDS):
        writer.begin_transaction()
        writer.produce(TOPIC, str(number).encode())
        writer.commit_transaction(30)


def _next_value(consumer: Consumer) -> bytes | None:
    deadline = time.monotonic() + ADMIN_TIMEOUT_SECONDS
    while True:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return message.value()
        assert time.monotonic() < deadline, message and message.error()
