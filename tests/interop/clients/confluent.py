"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.clients.record import Placed, Record, Sending, Settings

NAME = "confluent-kafka"
TIMEOUT_SECONDS = 120.0


class DeliveryError(RuntimeError):
    """A record was not acknowledged."""


def produce(
    bootstrap: str,
    topic: str,
    records: list[Record],
    sending: Sending,
    settings: Settings | None = None,
) -> list[Placed] | None:
    """Send `records`; return where they went, or None for fire-and-forget."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": sending.acks,
            "compression.type": sending.codec,
            "enable.idempotence": sending.is_idempotent,
            "linger.ms": 0 if sending.style == "sync" else 5,
            **(settings or {}),
        }
    )
    placed: list[Placed] = []

    def delivered(error: object, message: Any) -> None:
        if error is not None:
            raise DeliveryError(str(error))
        placed.append(Placed(message.partition(), message.offset()))

    callback = None if sending.style == "fire-and-forget" else delivered
    for record in records:
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=callback,
        )
        if sending.style == "sync":
            producer.flush(TIMEOUT_SECONDS)
    left = producer.flush(TIMEOUT_SECONDS)
    if left:
        raise DeliveryError(f"{left} records were not sent")
    return None if callback is None else placed


def read(bootstrap: str, topic: str, count: int, settings: Settings | None = None) -> list[Record]:
    """Return the first `count` records of `topic`, by partition and offset."""
    own = {"bootstrap.servers": bootstrap, "group.id": "reader", **_ALONE}
    consumer = Consumer({**own, **(settings or {})})
    try:
        known = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in known])
        records: list[Record] = []
        while len(records) < count:
            messages = consumer.consume(count - len(records), TIMEOUT_SECONDS)
            if not messages:
                raise TimeoutError(f"{len(records)} of {count} records of {topic}")
            records += [record_of(message) for message in messages]
    finally:
        consumer.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


def values_of(bootstrap: str, topic: str, partition: int, end: int) -> dict[int, bytes]:
    """Return the values of one partition up to offset `end`, by offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **_ALONE})
    found: dict[int, bytes] = {}
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while max(found, default=-1) < end - 1:
            messages = consumer.consume(end, TIMEOUT_SECONDS)
            if not messages:
                raise TimeoutError(f"{topic}-{partition} to {max(found, default=-1)}, not {end}")
            found |= {one.offset: one.value or b"" for one in map(record_of, messages)}
    finally:
        consumer.close()
    return found


def record_of(message: Any) -> Record:
    """Translate a message; raises `KafkaException` where it is an error."""
    if message.error() is not None:
        raise DeliveryError(str(message.error()))
    return Record(
        partition=message.partition(),
        key=message.key(),
        value=message.value(),
        timestamp_ms=message.timestamp()[1],
        headers=tuple(message.headers() or ()),
        offset=message.offset(),
    )


_ALONE = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "check.crcs": True}
