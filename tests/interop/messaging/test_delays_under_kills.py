"""kill -9 while records wait and are delivered: each one comes, once."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import NewName
    from tests.support.brokers.trio import Trio

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no delays")

RECORDS = 600
LONGEST_MS = 4_000
KILLS = 4
PATIENCE_SECONDS = 120.0
ENABLED = {"delivery.delay.enable": "true", "segment.bytes": "100000"}


class Sender:
    """An idempotent producer of numbered records with drawn delays."""

    def __init__(self, bootstrap: str, topic: str, chance: random.Random) -> None:
        self.acknowledged: set[bytes] = set()
        """Values of the records that are certain."""
        self.failures: list[str] = []
        self._topic = topic
        self._chance = chance
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
            }
        )

    def send(self, count: int) -> None:
        """Send some, and do not wait for them."""
        for _ in range(count):
            delay_ms = self._chance.choice([0, self._chance.randint(1, LONGEST_MS)])
            value = b"%d" % self._chance.getrandbits(60)

            def note(error: object, _: object, value: bytes = value) -> None:
                if error is None:
                    self.acknowledged.add(value)
                else:
                    self.failures.append(str(error))

            headers: list[tuple[str, str | bytes | None]] = []
            if delay_ms:
                headers.append(("deliver-after", b"%d" % delay_ms))
            self._producer.produce(self._topic, value, headers=headers, on_delivery=note)
        self._producer.poll(0)

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        assert self._producer.flush(PATIENCE_SECONDS) == 0


def read_all(bootstrap: str, topic: str, wanted: set[bytes]) -> list[tuple[bytes, int]]:
    """Values and timestamps of all records, once the wanted ones are there and time has passed."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "x", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[tuple[bytes, int]] = []
    missing = set(wanted)
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        for message in consumer.consume(500, 0.5):
            if message.error() is None:
                value = message.value()
                assert value is not None
                read.append((value, message.timestamp()[1]))
                missing.discard(value)
        if not missing:
            end = min(end, time.monotonic() + 2)
    consumer.close()
    return read


def check(sender: Sender, read: list[tuple[bytes, int]]) -> None:
    """Check that each acknowledged record is there once, none with a time before its delivery."""
    assert sender.failures == []
    counts = Counter(value for value, _ in read)
    assert not [value for value in sender.acknowledged if counts[value] != 1]
    assert max(counts.values()) == 1
    now_ms = time.time() * 1000  # noqa: TID251 - that of the broker
    assert all(timestamp <= now_ms for _, timestamp in read)


@pytest.mark.slow
def test_records_that_wait_survive_kills_of_their_only_broker(tmp_path: Path) -> None:
    chance = random.Random(1)
    broker = ours(tmp_path)
    broker.start()
    try:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "w", 1, ENABLED)
        sender = Sender(broker.bootstrap, "w", chance)
        for _ in range(KILLS):
            sender.send(RECORDS // KILLS)
            time.sleep(chance.uniform(0.1, 1.0))
            broker.kill()
            broker.start()
        sender.finish()

        check(sender, read_all(broker.bootstrap, "w", set(sender.acknowledged)))
    finally:
        broker.kill()


@pytest.mark.slow
def test_records_that_wait_survive_the_deaths_of_their_leaders(
    trio: Trio, new_name: NewName
) -> None:
    chance = random.Random(2)
    topic = new_name("waiting")
    create_topic(trio.admin, topic, 1, ENABLED, replicas=3)
    eventually(lambda: trio.leader(topic, 0) >= 0)
    sender = Sender(trio.bootstrap, topic, chance)
    for _ in range(2):
        sender.send(RECORDS // 2)
        time.sleep(chance.uniform(0.5, 1.5))
        leader = trio.leader(topic, 0)
        trio.brokers[leader].kill()
        trio.wait_for_another_leader(topic, 0, leader)
        trio.heal()
    sender.finish()

    check(sender, read_all(trio.bootstrap, topic, set(sender.acknowledged)))
