"""Offsets by time at the edges of batches, asked of either broker, against a walk over all records.

With AGAINST=apache these tests ask Apache Kafka itself.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from protocol.errors import ErrorCode
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.interop.hostility.test_refused_batches import ask, now_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.brokers.broker_process import BrokerProcess

SPEC: Any = OffsetSpec
TIMEOUT = 120.0
BATCHES = 40
NO_TIMESTAMP = -1
END = -1
"""librdkafka's result when no record is so late: the end of the partition."""


def by_time(bootstrap: str, topic: str, timestamps: list[int]) -> list[int]:
    """The offsets that go with the times; END where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "time-traveller"})
    try:
        found = []
        for timestamp in timestamps:
            asked = [TopicPartition(topic, 0, timestamp)]
            found.append(consumer.offsets_for_times(asked, TIMEOUT)[0].offset)
        return found
    finally:
        consumer.close()


def of_greatest_timestamp(bootstrap: str, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    spec = {TopicPartition(topic, 0): SPEC.max_timestamp()}
    ((_, found),) = admin.list_offsets(spec).items()
    return int(found.result(TIMEOUT).offset)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_first_record_that_is_not_earlier_is_found(
    broker: BrokerProcess, new_topic: Callable[..., str], codec: Codec
) -> None:
    topic = new_topic(**{"index.interval.bytes": "100"})
    chance = random.Random(codec)
    base = now_ms() - 1_000_000
    times: list[int] = []
    for number in range(BATCHES):
        batch_times = [base + number * 10 + chance.randint(-60, 60) for _ in range(4)]
        records = [NewRecord(one, b"key", b"value" * 10) for one in batch_times]
        answer = ask(broker.port, topic, build_batch(records, codec=codec))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, len(times))
        times += batch_times

    asked = sorted({one + delta for one in chance.sample(times, 40) for delta in (-1, 0, 1)})
    expected = [
        next((offset for offset, one in enumerate(times) if one >= timestamp), END)
        for timestamp in asked
    ]

    assert by_time(broker.bootstrap, topic, asked) == expected
    assert of_greatest_timestamp(broker.bootstrap, topic) == times.index(max(times))
    assert by_time(broker.bootstrap, topic, [max(times) + 1]) == [END]


def test_time_of_the_append_finds_the_first_of_its_batch(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    stamps = []
    for _ in range(5):
        batch = build_batch([NewRecord(5, b"k", b"v")] * 3)
        stamps.append(ask(broker.port, topic, batch).log_append_time_ms)

    expected = [3 * stamps.index(stamp) for stamp in stamps]

    assert by_time(broker.bootstrap, topic, stamps) == expected
    assert of_greatest_timestamp(broker.bootstrap, topic) == 3 * stamps.index(max(stamps))


def test_deleted_records_are_not_found(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    base = now_ms() - 1_000_000
    for number in range(3):
        records = [NewRecord(base + 10 * number + index, b"k", b"v") for index in range(4)]
        ask(broker.port, topic, build_batch(records))
    partition = TopicPartition(topic, 0, 6)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([partition])[partition].result(TIMEOUT)

    found = by_time(broker.bootstrap, topic, [0, base, base + 11, base + 12, base + 13])

    assert found == [6, 6, 6, 6, 7]


def test_first_of_records_without_timestamps_has_the_greatest(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    for count in (3, 2):
        ask(broker.port, topic, build_batch([NewRecord(NO_TIMESTAMP, b"k", b"v")] * count))

    assert of_greatest_timestamp(broker.bootstrap, topic) == 0
    assert of_greatest_timestamp(broker.bootstrap, new_topic()) == END
