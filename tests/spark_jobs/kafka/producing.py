"""Making topics and filling them with a stock client, beside Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TIMEOUT_SECONDS = 120.0
LARGEST_BYTES = 20_000_000


class Record(NamedTuple):
    """What to produce."""

    key: bytes | None
    value: bytes | None
    partition: int = -1


def admin(servers: str) -> AdminClient:
    """Return an admin client."""
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def create_topic(
    servers: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic unless it is there."""
    client = admin(servers)
    if topic not in client.list_topics(timeout=TIMEOUT_SECONDS).topics:
        new = NewTopic(topic, num_partitions=partitions, config=dict(config or {}))
        client.create_topics([new])[topic].result()


def produce_records(servers: str, topic: str, records: Iterable[Record]) -> None:
    """Produce records in order, and see that all are taken."""
    settings = {"bootstrap.servers": servers, "message.max.bytes": LARGEST_BYTES, "log_level": 0}
    producer = Producer({**settings, "enable.idempotence": True})
    failed: list[str] = []
    for record in records:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            partition=record.partition,
            on_delivery=lambda error, _: failed.append(str(error)) if error else None,
        )
        producer.poll(0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert failed == []
