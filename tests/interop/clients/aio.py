"""aiokafka, each verb in an event loop of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.interop.clients.kafka_python import record_of
from tests.interop.clients.record import Placed, Record, Sending, Settings

NAME = "aiokafka"
TIMEOUT_SECONDS = 120.0


def produce(
    bootstrap: str,
    topic: str,
    records: list[Record],
    sending: Sending,
    settings: Settings | None = None,
) -> list[Placed] | None:
    """Send `records`; return where they went, or None for fire-and-forget."""
    return asyncio.run(_produce(bootstrap, topic, records, sending, settings or {}))


def read(bootstrap: str, topic: str, count: int, settings: Settings | None = None) -> list[Record]:
    """Return the first `count` records of `topic`, by partition and offset."""
    return asyncio.run(_read(bootstrap, topic, count, settings or {}))


async def _produce(
    bootstrap: str, topic: str, records: list[Record], sending: Sending, settings: Settings
) -> list[Placed] | None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all" if sending.acks == -1 else sending.acks,
        compression_type=None if sending.codec == "none" else sending.codec,
        enable_idempotence=sending.is_idempotent,
        linger_ms=0 if sending.style == "sync" else 5,
        **settings,
    )
    await producer.start()
    placed: list[Placed] = []
    futures = []
    try:
        for record in records:
            future = await _send(producer, topic, record)
            if sending.style == "sync":
                await asyncio.wait_for(asyncio.shield(future), TIMEOUT_SECONDS)
            futures.append(future)
        await producer.flush()
        for future in futures if sending.style != "fire-and-forget" else ():
            metadata = await future
            if metadata is not None:  # acks=0 brings nothing back
                placed.append(Placed(metadata.partition, metadata.offset))
    finally:
        await producer.stop()
    return None if sending.style == "fire-and-forget" else placed


async def _read(bootstrap: str, topic: str, count: int, settings: Settings) -> list[Record]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings
    )
    await consumer.start()
    records: list[Record] = []
    try:
        metadata = await consumer._client.fetch_all_metadata()
        known = metadata.partitions_for_topic(topic)
        partitions = [TopicPartition(topic, partition) for partition in known]
        consumer.assign(partitions)
        while len(records) < count:
            polled = await consumer.getmany(timeout_ms=int(TIMEOUT_SECONDS * 1000))
            if not polled:
                raise TimeoutError(f"{len(records)} of {count} records of {topic}")
            records += [record_of(message) for batch in polled.values() for message in batch]
    finally:
        await consumer.stop()
    return sorted(records, key=lambda record: (record.partition, record.offset))


async def _send(producer: Any, topic: str, record: Record) -> Any:
    return await producer.send(
        topic,
        value=record.value,
        key=record.key,
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
        headers=list(record.headers),
    )
