"""Where the positions of collected logs are kept: a compacted topic, written with the lines.

A record's key is the log's (`web1:/var/log/syslog`), its value a JSON list of positions. They are
written in the transaction that writes the lines, so that neither is ever there without the other.

In the topic of the lines they would end with its retention, and the position of a log that was
quiet for a week with them; in a consumer group there is room for a number, but not for a file's
first bytes.
"""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from spark_jobs.errors import JobError
from spark_jobs.log_collection.log_positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Message

GROUP = "spark_jobs-log-positions"
TIMEOUT_SECONDS = 15.0
PATIENCE = 8
"""How many times `TIMEOUT_SECONDS` to wait for a transaction of another collector to end."""

TOPIC_SETTINGS = {"cleanup.policy": "compact"}


def positions_value(positions: Sequence[Position]) -> bytes:
    """Return the value of a log's record."""
    return json.dumps([position.to_json() for position in positions]).encode()


def read_positions(topic: str, settings: dict[str, Any]) -> dict[bytes, list[Position]]:
    """Return the positions of every log, by its key, that committed transactions wrote.

    All that is in the topic when this begins is waited for: a transaction that another collector
    has open would otherwise hide what was committed behind it.
    """
    ends = _ends(topic, settings)
    latest: dict[bytes, list[Position]] = {}
    for key, value in _committed(ends, settings):
        try:
            latest[key] = [Position.from_json(found) for found in json.loads(value)]
        except (ValueError, KeyError, TypeError) as error:
            raise JobError(f"topic '{topic}' holds something else than positions") from error
    return latest


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a log: all its lines go there, in order."""
    return zlib.crc32(key) % partitions


def _ends(topic: str, settings: dict[str, Any]) -> list[TopicPartition]:
    """Return the partitions that hold something, each with the offset behind its last record."""
    consumer = Consumer({**settings, "group.id": GROUP, "isolation.level": "read_uncommitted"})
    try:
        partitions = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
        found = []
        for number in partitions:
            where = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_SECONDS)
            if high > low:
                found.append(TopicPartition(topic, number, high))
        return found
    finally:
        consumer.close()


def _committed(
    ends: Sequence[TopicPartition], settings: dict[str, Any]
) -> Iterator[tuple[bytes, bytes]]:
    consumer = Consumer(
        {
            **settings,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        for end in ends:
            consumer.assign([TopicPartition(end.topic, end.partition, 0)])
            yield from _until(consumer, end)
    finally:
        consumer.close()


def _until(consumer: Consumer, end: TopicPartition) -> Iterator[tuple[bytes, bytes]]:
    waited = 0
    while True:
        message = consumer.poll(TIMEOUT_SECONDS)
        if message is None:
            waited += 1
            if waited == PATIENCE:
                raise JobError(
                    f"{end.topic}-{end.partition} cannot be read up to {end.offset}: a transaction "
                    "of another collector is open"
                )
            continue
        error = message.error()
        if error is None:
            yield bytes(message.key() or b""), bytes(message.value() or b"[]")
            if _offset(message) + 1 >= end.offset:
                return
        elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
            raise KafkaException(error)
        elif _offset(message) >= end.offset:
            return


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset
