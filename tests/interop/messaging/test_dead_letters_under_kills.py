"""kill -9 while dead letters are sent on: what was under way is sent again, and known there."""

from __future__ import annotations

import time
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

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no retry topics")

LETTERS = 600
KILLS = 3
PATIENCE_SECONDS = 120.0
DEAD_AT_ONCE = {"retry.policy": "levels", "retry.max.attempts": "1"}


class DeadLetters:
    """Records that were retried once already, sent to a topic that retries once."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent = [b"%d" % number for number in range(LETTERS)]
        self._left = iter(self.sent)
        self._topic = topic
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
        for _ in range(count):
            self._producer.produce(self._topic, next(self._left), headers=[("retry-attempt", b"1")])
        assert self._producer.flush(PATIENCE_SECONDS) == 0


def read(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    """Return the values of a topic once there are so many, and those of a second after."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    end = time.monotonic() + PATIENCE_SECONDS
    is_enough = False
    while time.monotonic() < end:
        came = consumer.consume(500, 0.5)
        values += [message.value() for message in came if message.error() is None]
        if len(values) >= count and not is_enough:
            is_enough = True
            end = min(end, time.monotonic() + 1)
    consumer.close()
    return values


def test_dead_letters_arrive_once_and_in_order_from_a_broker_alone(tmp_path: Path) -> None:
    broker = ours(tmp_path)
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        create_topic(admin, "g.retry", 1, DEAD_AT_ONCE)
        letters = DeadLetters(broker.bootstrap, "g.retry")
        for _ in range(KILLS):
            letters.send(LETTERS // KILLS)
            broker.kill()
            broker.start()

        assert read(broker.bootstrap, "g.dlq", LETTERS) == letters.sent
    finally:
        broker.kill()


@pytest.mark.slow
def test_dead_letters_arrive_once_and_in_order_over_the_deaths_of_leaders(
    trio: Trio, new_name: NewName
) -> None:
    group = new_name("g")
    for topic, config in ((f"{group}.retry", DEAD_AT_ONCE), (f"{group}.dlq", None)):
        create_topic(trio.admin, topic, 1, config, replicas=3)
    eventually(lambda: trio.leader(f"{group}.retry", 0) >= 0)
    letters = DeadLetters(trio.bootstrap, f"{group}.retry")
    for dying in (f"{group}.retry", f"{group}.dlq", f"{group}.retry"):
        letters.send(LETTERS // KILLS)
        leader = trio.leader(dying, 0)
        trio.brokers[leader].kill()
        trio.wait_for_another_leader(dying, 0, leader)
        trio.heal()

    assert read(trio.bootstrap, f"{group}.dlq", LETTERS) == letters.sent
