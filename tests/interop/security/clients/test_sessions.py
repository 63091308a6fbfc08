"""Sessions that end every second or two: clients authenticate again and lose nothing (KIP-368)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import create_topic
from tests.support import jars
from tests.support.brokers.broker_process import write_properties
from tests.support.security.access import Access
from tests.support.security.realm import BOB
from tests.support.security.secured_brokers import OURS, secured_broker
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.security.realm import Realm
    from tests.support.security.secured_brokers import SecuredBroker

pytestmark = [pytest.mark.interop, pytest.mark.java]

LIFETIME_MS = 1500
RECORDS = 900
A_SECOND = 150
"""Rate at which sending takes four lifetimes."""
ANSWER_SECONDS = 60.0


@pytest.fixture(scope="module")
def short_lived(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker whose sessions end soon."""
    keys = {"connections.max.reauth.ms": str(LIFETIME_MS)}
    broker = secured_broker(OURS, tmp_path_factory.mktemp("sessions"), realm, keys)
    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.ports.bootstrap("PLAINTEXT")})
        for name in ("java", "librdkafka"):
            create_topic(admin, name, 1)
        yield broker
    finally:
        broker.process.kill()


@pytest.mark.parametrize(
    "version", [pytest.param(jars.KAFKA_3, marks=pytest.mark.slow), jars.KAFKA_4]
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_java_producer_goes_on(
    short_lived: SecuredBroker, realm: Realm, tmp_path: Path, version: str, mechanism: str
) -> None:
    access = Access("SASL_PLAINTEXT", mechanism)
    keys = {"bootstrap.servers": short_lived.bootstrap(access), **access.java(realm)}
    config = write_properties(tmp_path / "client.properties", keys)
    option = "--producer.config" if version == jars.KAFKA_3 else "--command-config"
    tools = Tools(version)
    try:
        said = tools.check(
            "producer-perf-test",
            *("--topic", "java", "--num-records", str(RECORDS), "--record-size", "100"),
            *("--throughput", str(A_SECOND), option, str(config)),
        )
    finally:
        tools.close()

    assert f"{RECORDS} records sent" in said.output
    assert "Exception" not in said.output + said.errors
    assert "expired" not in short_lived.process.output_tail()


def test_librdkafka_goes_on(short_lived: SecuredBroker, realm: Realm) -> None:
    access = Access("SASL_PLAINTEXT", "SCRAM-SHA-512", BOB)
    settings = {
        "bootstrap.servers": short_lived.bootstrap(access),
        **access.librdkafka(realm),
    }
    producer = Producer({**settings, "acks": "all", "message.send.max.retries": 0})
    failures: list[object] = []
    sent = LIFETIME_MS * 4 // 20
    for number in range(sent):
        producer.produce(
            "librdkafka", str(number), on_delivery=lambda error, _: failures.append(error)
        )
        producer.poll(0.02)
    assert producer.flush(ANSWER_SECONDS) == 0
    assert [error for error in failures if error is not None] == []

    consumer = Consumer({**settings, "group.id": "sessions", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    received: list[bytes | None] = []
    until = time.monotonic() + ANSWER_SECONDS
    while len(received) < sent and time.monotonic() < until:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            received.append(message.value())
    consumer.close()
    assert received == [str(number).encode() for number in range(sent)]
    assert "expired" not in short_lived.process.output_tail()
