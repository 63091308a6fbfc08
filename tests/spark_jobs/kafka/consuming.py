"""Reading a topic whole with a stock client, beside Spark."""

from __future__ import annotations

from typing import NamedTuple, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

TIMEOUT_SECONDS = 120.0


class Read(NamedTuple):
    """One record."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class Ends:
    """How many records were ever in some topics, asked again and again; some may not be there."""

    def __init__(self, servers: str, *topics: str) -> None:
        self._topics = topics
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "t", "log_level": 0})
        self._known: dict[tuple[str, int], int] = {}

    def __call__(self) -> int:
        """Return the sum of the ends of their partitions."""
        there = self._consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        places = [(t, number) for t in self._topics if t in there for number in there[t].partitions]
        return sum(self._end(*place) for place in places)

    def _end(self, topic: str, number: int) -> int:
        place = TopicPartition(topic, number)
        try:
            _, high = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
            return self._known.get((topic, number), 0)  # the topic was made just now
        self._known[topic, number] = high
        return high

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


def read_topic(servers: str, topic: str) -> list[Read]:
    """Return all records that the topic holds now."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tests", "log_level": 0})
    try:
        partitions = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
        ends = {}
        for index in partitions:
            low, high = consumer.get_watermark_offsets(
                TopicPartition(topic, index), timeout=TIMEOUT_SECONDS
            )
            if high > low:
                ends[index] = high
        consumer.assign([TopicPartition(topic, index, 0) for index in ends])
        records: list[Read] = []
        while len(records) < sum(ends.values()):
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None, f"{len(records)} of {sum(ends.values())} records"
            records.append(_read(message))
        return records
    finally:
        consumer.close()


def read_committed(servers: str, topic: str) -> list[Read]:
    """Return the records that belong to no transaction, or to a committed one."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "tests",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    records = []
    try:
        for number in consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions:
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(TIMEOUT_SECONDS)
                assert message is not None
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    break
                records.append(_read(message))
        return records
    finally:
        consumer.close()


def _read(message: Message) -> Read:
    assert message.error() is None
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: list[tuple[str, bytes]] = [*(message.headers() or [])]
    return Read(
        partition, offset, message.timestamp()[1], message.key(), message.value(), dict(headers)
    )
