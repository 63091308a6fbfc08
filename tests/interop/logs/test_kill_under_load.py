"""kill -9 under load, again and again: what was acknowledged is there, once, in order.

Two idempotent producers (acks=all) write numbered records to three partitions while the broker is
killed at seeded moments and started again on the same directory, by its own recovery alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clients import confluent
from tests.interop.conftest import against_apache, create_topic, patiently

if TYPE_CHECKING:
    from tests.interop.clients.record import Record
    from tests.support.brokers.broker_process import BrokerProcess

PARTITIONS = 3
KILLS = 2 if against_apache() else 6
LEAST_SECONDS, MOST_SECONDS = 0.3, 1.2
RECORDS_BETWEEN_POLLS = 50
MOST_OUTSTANDING = 5_000
FLUSH_SECONDS = 240.0


class Load(threading.Thread):
    """An idempotent producer; `acknowledged` grows as the broker answers."""

    def __init__(self, name: str, bootstrap: str, topic: str, padding: bytes = b"") -> None:
        super().__init__(name=name)
        self._padding = padding
        self.acknowledged: set[tuple[int, bytes]] = set()
        self.failures: list[str] = []
        self._topic = topic
        self._stop_asked = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "compression.type": "lz4" if name.endswith("0") else "none",
                "batch.size": 50_000,
            }
        )

    def run(self) -> None:
        number = 0
        while not self._stop_asked.is_set():
            for _ in range(RECORDS_BETWEEN_POLLS):
                value = f"{self.name}:{number:08}".encode() + self._padding
                partition = number % PARTITIONS
                self._producer.produce(
                    self._topic, value, partition=partition, on_delivery=self._delivered
                )
                number += 1
            self._producer.poll(0.002)
            while len(self._producer) > MOST_OUTSTANDING:
                self._producer.poll(0.05)
        if self._producer.flush(FLUSH_SECONDS):
            self.failures.append("records are still not acknowledged")

    def finish(self) -> None:
        """Send no more, and wait until everything is acknowledged."""
        self._stop_asked.set()
        self.join()

    def _delivered(self, error: object, message: object) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        self.acknowledged.add((message.partition(), message.value()))  # type: ignore[attr-defined]


def all_records(bootstrap: str, topic: str) -> list[Record]:
    """Return everything the topic holds."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counter"})

    def held_by(partition: int) -> tuple[int, int]:
        asked = TopicPartition(topic, partition)
        low, high = patiently(lambda: consumer.get_watermark_offsets(asked, 30.0))
        return low, high

    held = [held_by(partition) for partition in range(PARTITIONS)]
    consumer.close()
    assert {low for low, _ in held} == {0}
    return confluent.read(bootstrap, topic, sum(high for _, high in held))


def check_nothing_is_lost_or_repeated(records: list[Record], loads: list[Load]) -> None:
    """Compare what is stored with what was acknowledged."""
    stored: dict[tuple[int, bytes], list[bytes]] = defaultdict(list)
    for record in records:
        assert record.value is not None
        stored[record.partition, record.value.partition(b":")[0]].append(record.value)
    for (partition, writer), values in stored.items():
        assert values == sorted(set(values)), f"{writer!r} in partition {partition}"
    present = {(record.partition, record.value) for record in records}
    for load in loads:
        assert load.failures == []
        assert len(load.acknowledged) > MOST_OUTSTANDING / 10
        lost = load.acknowledged - present
        assert not lost, f"{len(lost)} acknowledged records are gone: {sorted(lost)[:5]}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_acknowledged_records_survive_kills(own_broker: BrokerProcess, seed: int) -> None:
    chance = random.Random(seed)
    own_broker.start()
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    create_topic(admin, "survivor", PARTITIONS, {"segment.bytes": "1048576"})
    loads = [Load(f"load{number}", own_broker.bootstrap, "survivor") for number in range(2)]
    for load in loads:
        load.start()

    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(LEAST_SECONDS, MOST_SECONDS))
            own_broker.kill()
            own_broker.start()
        time.sleep(LEAST_SECONDS)
    finally:
        for load in loads:
            load.finish()

    check_nothing_is_lost_or_repeated(all_records(own_broker.bootstrap, "survivor"), loads)
    assert own_broker.stop() in {0, 143}
    own_broker.start()
    check_nothing_is_lost_or_repeated(all_records(own_broker.bootstrap, "survivor"), loads)


def test_committed_offsets_and_topics_survive_a_kill(own_broker: BrokerProcess) -> None:
    own_broker.start()
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    create_topic(admin, "kept", 2, {"retention.ms": "123456789"})
    wanted = [TopicPartition("kept", 0, 11, "m"), TopicPartition("kept", 1, 22)]
    consumer = Consumer({"bootstrap.servers": own_broker.bootstrap, "group.id": "kept"})
    committed = patiently(lambda: consumer.commit(offsets=wanted, asynchronous=False))
    assert [one.error for one in committed or []] == [None, None]
    consumer.close()
    before = own_broker.bootstrap

    own_broker.kill()
    own_broker.start()

    consumer = Consumer({"bootstrap.servers": before, "group.id": "kept"})
    asked = [TopicPartition("kept", 0), TopicPartition("kept", 1)]
    found = patiently(lambda: consumer.committed(asked, 30.0))
    known = consumer.list_topics(timeout=FLUSH_SECONDS).topics
    consumer.close()
    assert [(one.offset, one.metadata or "") for one in found] == [(11, "m"), (22, "")]
    assert sorted(known["kept"].partitions) == [0, 1]
