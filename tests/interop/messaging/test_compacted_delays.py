"""A running broker compacts a topic in which records wait; it is killed, and delivers them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no delays")

TOPIC = "flights"
EAGER = {
    "log.index.size.max.bytes": "100000",
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "delete.retention.ms": "0",
    "delivery.delay.enable": "true",
}
WAIT_SECONDS = 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = ours(tmp_path / "1", EAGER, data_directory=tmp_path / "data")
    broker.start()
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, 1, COMPACTED)
    yield broker
    broker.kill()


def send(broker: BrokerProcess, *records: tuple[str, str | None, str | None]) -> None:
    """Records of key, value and delay, each acknowledged before the next."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for key, value, delay in records:
        headers: list[tuple[str, str | bytes | None]] = []
        if delay is not None:
            headers = [("deliver-after", delay)]
        producer.produce(TOPIC, value, key, headers=headers)
        assert producer.flush(30) == 0


def read(broker: BrokerProcess) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of every record that is visible, in order."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "any", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = []
    while (message := consumer.poll(60)) is not None:
        error = message.error()
        if error is None:
            found.append((message.key(), message.value()))
        elif error.code() == KafkaError._PARTITION_EOF:
            break
    consumer.close()
    return found


@pytest.mark.slow
def test_delayed_records_survive_compaction_and_count_from_their_delivery(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    sent_at = time.monotonic()
    send(
        broker,
        ("long", "late", f"{WAIT_SECONDS}s"),
        ("gone", "first", None),
        ("gone", None, "1s"),
        ("short", "delivered", "500ms"),
    )

    def filled() -> bool:
        """A key is written until the cleaner has removed what is superseded."""
        send(broker, *[("filler", "x" * 4000, None)] * 5)
        found = read(broker)
        is_clean = len(found) < 12 and (b"short", b"delivered") in found
        return is_clean and all(key != b"gone" for key, _ in found)

    eventually(filled)
    assert all(key != b"long" for key, _ in read(broker)) or (
        time.monotonic() - sent_at >= WAIT_SECONDS
    )
    broker.kill()
    again = ours(tmp_path / "2", EAGER, data_directory=tmp_path / "data")
    again.start()
    try:
        eventually(lambda: (b"long", b"late") in read(again))
        found = read(again)
        assert found.count((b"long", b"late")) == 1
        assert found.count((b"short", b"delivered")) == 1
        assert all(key != b"gone" for key, _ in found)
    finally:
        again.kill()
