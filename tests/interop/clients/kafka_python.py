"""kafka-python."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.interop.clients.record import Placed, Record, Sending, Settings

NAME = "kafka-python"
TIMEOUT_SECONDS = 120.0


def produce(
    bootstrap: str,
    topic: str,
    records: list[Record],
    sending: Sending,
    settings: Settings | None = None,
) -> list[Placed] | None:
    """Send `records`; return where they went, or None for fire-and-forget."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all" if sending.acks == -1 else sending.acks,
        compression_type=None if sending.codec == "none" else sending.codec,
        enable_idempotence=sending.is_idempotent,
        linger_ms=0 if sending.style == "sync" else 5,
        **(settings or {}),
    )
    placed: list[Placed] = []
    failures: list[object] = []

    def delivered(metadata: Any) -> None:
        placed.append(Placed(metadata.partition, metadata.offset))

    try:
        for record in records:
            future = _send(producer, topic, record)
            if sending.style == "callback":
                future.add_callback(delivered).add_errback(failures.append)
            elif sending.style == "sync":
                delivered(future.get(TIMEOUT_SECONDS))
        producer.flush(TIMEOUT_SECONDS)
    finally:
        producer.close()
    if failures:
        raise RuntimeError(f"not acknowledged: {failures}")
    return None if sending.style == "fire-and-forget" else placed


def read(bootstrap: str, topic: str, count: int, settings: Settings | None = None) -> list[Record]:
    """Return the first `count` records of `topic`, by partition and offset."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, **(settings or {}))
    try:
        known = consumer.partitions_for_topic(topic)
        partitions = [TopicPartition(topic, partition) for partition in known]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        records: list[Record] = []
        while len(records) < count:
            polled = consumer.poll(timeout_ms=int(TIMEOUT_SECONDS * 1000))
            if not polled:
                raise TimeoutError(f"{len(records)} of {count} records of {topic}")
            records += [record_of(message) for batch in polled.values() for message in batch]
    finally:
        consumer.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


def record_of(message: Any) -> Record:
    """Translate a consumer record."""
    return Record(
        partition=message.partition,
        key=message.key,
        value=message.value,
        timestamp_ms=message.timestamp,
        headers=tuple(message.headers),
        offset=message.offset,
    )


def _send(producer: Any, topic: str, record: Record) -> Any:
    return producer.send(
        topic,
        value=record.value,
        key=record.key,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
        headers=list(record.headers),
    )
