"""Records that a consumer fails at come back later and later, and end as dead letters, once."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it names no exports
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from tests.interop.conftest import against_apache, create_topic
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from tests.interop.conftest import NewName

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no retry topics")

Headers = list[tuple[str, str | bytes | None]]

PATIENCE_SECONDS = 60.0
BACKOFF_MS = 200
SET = AlterConfigOpType.SET
POLICY = {
    "retry.policy": "exponential",
    "retry.backoff.ms": str(BACKOFF_MS),
    "retry.max.attempts": "3",
}


def producer(bootstrap: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})


def send(client: Producer, topic: str, headers: Headers) -> None:
    client.produce(topic, b"17", b"order", headers=headers)
    assert client.flush(PATIENCE_SECONDS) == 0


def reader(bootstrap: str, topic: str, *, tells_end: bool = False) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "x",
            "enable.auto.commit": False,
            "enable.partition.eof": tells_end,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def next_of(consumer: Consumer) -> Message:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("nothing came")


def headers_of(message: Message) -> Headers:
    headers = message.headers()
    assert isinstance(headers, list)
    return headers


def texts(message: Message) -> dict[str, str]:
    return {name: value.decode() for name, value in headers_of(message) if isinstance(value, bytes)}


@pytest.fixture
def retry_topic(admin: AdminClient, new_name: NewName) -> str:
    topic = f"{new_name('billing')}.retry"
    create_topic(admin, topic, 1, config=POLICY)
    return topic


def test_a_record_comes_back_later_each_time_and_is_dead_in_the_end(
    bootstrap: str, retry_topic: str
) -> None:
    client, consumer = producer(bootstrap), reader(bootstrap, retry_topic)
    headers: Headers = [("reason", b"no stock"), ("deliver-after", b"2h")]
    waits = []

    for attempt in (1, 2, 3):
        began = time.monotonic()
        send(client, retry_topic, headers)
        message = next_of(consumer)
        waits.append(time.monotonic() - began)
        assert (message.key(), message.value()) == (b"order", b"17")
        assert texts(message)["retry-attempt"] == str(attempt)
        assert texts(message)["reason"] == "no stock"
        assert "deliver-after" not in texts(message)
        headers = headers_of(message)
    send(client, retry_topic, headers)

    dead = next_of(reader(bootstrap, retry_topic.removesuffix(".retry") + ".dlq"))
    told = texts(dead)
    assert (dead.key(), dead.value()) == (b"order", b"17")
    assert told["reason"] == "no stock"
    assert told["dead-letter-attempts"] == "3"
    assert told["dead-letter-source"].startswith(f"{retry_topic}/0/")
    assert "retry-attempt" not in told
    least = [BACKOFF_MS / 1000 * factor for factor in (1, 2, 4)]
    assert all(wait >= wanted for wait, wanted in zip(waits, least, strict=True))
    assert all(name not in told for name in ("delivery-source", "delivery-point"))


def test_dead_letters_are_replayed_once_with_a_fresh_attempt_count(
    bootstrap: str, retry_topic: str
) -> None:
    dead_topic = retry_topic.removesuffix(".retry") + ".dlq"
    client = producer(bootstrap)
    sent: Headers = [("retry-attempt", b"3"), ("source", b"own"), ("retry-reason", b"no stock")]
    for _ in range(3):
        send(client, retry_topic, sent)
    letters = reader(bootstrap, dead_topic)
    sources = [texts(next_of(letters))["dead-letter-source"] for _ in range(3)]

    said = [put_back(bootstrap, dead_topic) for _ in range(2)]

    assert said == [f"{count} dead letters of {dead_topic} replayed" for count in (3, 0)]
    consumer = reader(bootstrap, retry_topic)
    again = [texts(next_of(consumer)) for _ in range(3)]
    assert sorted(told["replayed"] for told in again) == [f"{dead_topic}/0/{n}" for n in range(3)]
    for told in again:
        assert (told["retry-attempt"], told["retry-reason"]) == ("1", "no stock")
        assert not [name for name in told if name.startswith("dead-letter")]
    assert len(set(sources)) == 3


def put_back(bootstrap: str, dead_topic: str) -> str:
    """Replay dead letters with the command; return its output."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "spark_jobs.retry"),
            *("--bootstrap-servers", bootstrap, "--dead-topic", dead_topic),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_dead_letters_are_not_written_to_an_internal_topic(
    admin: AdminClient, bootstrap: str, new_name: NewName
) -> None:
    """Else a user who may configure a topic of his own could forge the offsets of all groups."""
    topic, internal = f"{new_name('billing')}.retry", "__consumer_offsets"
    create_topic(admin, topic, 1, config={**POLICY, "retry.dead.letter.topic": internal})
    client = producer(bootstrap)
    offsets = reader(bootstrap, internal, tells_end=True)
    consumer = reader(bootstrap, topic)
    consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_SECONDS)  # it is there now
    send(client, topic, [("retry-attempt", b"3")])
    send(client, topic, [])
    next_of(consumer)

    elsewhere = f"{topic}.dead"
    name = ConfigEntry("retry.dead.letter.topic", elsewhere, incremental_operation=SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[name])
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)

    assert next_of(reader(bootstrap, elsewhere)).key() == b"order"
    while (message := offsets.poll(PATIENCE_SECONDS)) and message.error() is None:
        assert message.key() != b"order"
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._PARTITION_EOF


def test_large_dead_letters_arrive_a_few_at_a_time(
    admin: AdminClient, bootstrap: str, new_name: NewName
) -> None:
    """All dead letters at once would make a batch too large for any topic."""
    topic, letters = f"{new_name('billing')}.retry", 20
    dead_topic = topic.removesuffix(".retry") + ".dlq"
    create_topic(admin, topic, 1, config=POLICY)
    client = producer(bootstrap)
    for _ in range(letters):
        client.produce(topic, bytes(300_000), headers=[("retry-attempt", b"3")])
    for number in range(letters):
        client.produce(topic, b"%d" % number + bytes(3_000), headers=[("retry-attempt", b"3")])
    assert client.flush(PATIENCE_SECONDS) == 0

    consumer = reader(bootstrap, dead_topic)
    sizes = [len(next_of(consumer).value() or b"") for _ in range(2 * letters)]

    assert sizes[:letters] == letters * [300_000]
    assert all(size < 4_000 for size in sizes[letters:])


def test_a_count_that_is_no_number_is_refused(bootstrap: str, retry_topic: str) -> None:
    failures: list[KafkaError | None] = []
    client = producer(bootstrap)
    client.produce(
        retry_topic,
        b"x",
        headers=[("retry-attempt", b"many")],
        on_delivery=lambda error, _: failures.append(error),
    )
    assert client.flush(PATIENCE_SECONDS) == 0

    assert [error.name() for error in failures if error is not None] == ["INVALID_RECORD"]


def test_in_a_transaction_a_record_is_dead_when_that_commits(
    bootstrap: str, retry_topic: str
) -> None:
    client = Producer({"bootstrap.servers": bootstrap, "transactional.id": retry_topic})
    client.init_transactions(PATIENCE_SECONDS)
    dead: Headers = [("retry-attempt", b"3")]
    for value, is_committed in ((b"aborted", False), (b"committed", True)):
        client.begin_transaction()
        client.produce(retry_topic, value, headers=dead)
        client.produce(retry_topic, value, headers=[("retry-attempt", b"1")])
        if is_committed:
            client.commit_transaction(PATIENCE_SECONDS)
        else:
            client.flush(PATIENCE_SECONDS)
            client.abort_transaction(PATIENCE_SECONDS)

    letters = reader(bootstrap, retry_topic.removesuffix(".retry") + ".dlq")
    assert next_of(letters).value() == b"committed"
    assert next_of(reader(bootstrap, retry_topic)).value() == b"committed"
    assert letters.poll(1.0) is None
