"""confluent-kafka: every way to commit, to start and to seek, and what lag it sees."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Sending, numbered_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.interop.conftest import NewTopicFunction

    NewConsumer = Callable[..., Consumer]

COUNT = 20
TIMEOUT = 120.0


@pytest.fixture
def topic(bootstrap: str, new_topic: NewTopicFunction) -> str:
    """Return a topic of one partition that holds `COUNT` records."""
    name = new_topic()
    confluent.produce(bootstrap, name, numbered_records(COUNT), Sending(style="callback"))
    return name


@pytest.fixture
def new_consumer(bootstrap: str) -> NewConsumer:
    """Return a consumer of a group: `new_consumer(group, **{"auto.offset.reset": "latest"})`."""

    def create(group: str, **config: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 60_000,
                **config,
            }
        )

    return create


def offsets_of(consumer: Consumer, count: int) -> list[int]:
    """Consume `count` records and return their offsets."""
    offsets: list[int] = []
    while len(offsets) < count:
        messages = consumer.consume(count - len(offsets), TIMEOUT)
        assert messages, f"only {offsets} came"
        offsets += [confluent.record_of(message).offset for message in messages]
    return offsets


def committed(consumer: Consumer, topic: str) -> TopicPartition:
    """Return what the group committed for partition 0."""
    return consumer.committed([TopicPartition(topic, 0)], TIMEOUT)[0]


def test_sync_commit_is_where_the_group_goes_on(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    group = new_group()
    with closing(new_consumer(group)) as consumer:
        consumer.subscribe([topic])
        assert offsets_of(consumer, 7) == list(range(7))
        (said,) = consumer.commit(asynchronous=False)
        assert (said.topic, said.partition, said.offset) == (topic, 0, 7)
        assert said.error is None

    with closing(new_consumer(group)) as consumer:
        assert committed(consumer, topic).offset == 7
        consumer.subscribe([topic])
        assert offsets_of(consumer, COUNT - 7) == list(range(7, COUNT))


def test_async_commit_calls_back(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    said: list[tuple[object, int]] = []

    def committed_it(error: object, partitions: list[TopicPartition]) -> None:
        said.extend((error, one.offset) for one in partitions)

    with closing(new_consumer(new_group(), on_commit=committed_it)) as consumer:
        consumer.subscribe([topic])
        offsets_of(consumer, 5)
        consumer.pause([TopicPartition(topic, 0)])
        consumer.commit(asynchronous=True)
        deadline = time.monotonic() + TIMEOUT
        while not said and time.monotonic() < deadline:
            consumer.poll(0.05)

        assert said == [(None, 5)]
        assert committed(consumer, topic).offset == 5


def test_specific_offset_is_committed_with_metadata(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    group = new_group()
    with closing(new_consumer(group)) as consumer:
        wanted = TopicPartition(topic, 0, 3, "half way - ½")
        consumer.commit(offsets=[wanted], asynchronous=False)

    with closing(new_consumer(group)) as consumer:
        found = committed(consumer, topic)
        assert (found.offset, found.metadata) == (3, "half way - ½")
        consumer.subscribe([topic])
        assert offsets_of(consumer, 2) == [3, 4]


def test_auto_commit_is_done_in_the_background_and_on_close(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    group = new_group()
    automatic = {"enable.auto.commit": True, "auto.commit.interval.ms": 100}
    with closing(new_consumer(group, **automatic)) as consumer:
        consumer.subscribe([topic])
        offsets_of(consumer, 6)
        deadline = time.monotonic() + TIMEOUT
        with closing(new_consumer(group)) as watcher:
            while committed(watcher, topic).offset != 6:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        offsets_of(consumer, 4)

    with closing(new_consumer(group)) as consumer:
        assert committed(consumer, topic).offset == 10


def test_a_missing_offset_is_returned_as_invalid(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group())) as consumer:
        assert committed(consumer, topic).offset == OFFSET_INVALID


def test_auto_offset_reset_earliest_latest_and_error(
    bootstrap: str, topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group())) as consumer:
        consumer.subscribe([topic])
        assert offsets_of(consumer, 1) == [0]

    latest = {"auto.offset.reset": "latest", "enable.partition.eof": True}
    with closing(new_consumer(new_group(), **latest)) as consumer:
        consumer.subscribe([topic])
        (end,) = consumer.consume(1, TIMEOUT)
        error = end.error()
        assert error is not None
        assert (error.code(), end.offset()) == (KafkaError._PARTITION_EOF, COUNT)
        confluent.produce(bootstrap, topic, numbered_records(1), Sending())
        assert offsets_of(consumer, 1) == [COUNT]

    with closing(new_consumer(new_group(), **{"auto.offset.reset": "error"})) as consumer:
        consumer.subscribe([topic])
        (message,) = consumer.consume(1, TIMEOUT)
        assert message.error() is not None


def test_offset_out_of_range_is_reset(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group())) as consumer:
        consumer.assign([TopicPartition(topic, 0, COUNT + 1000)])
        assert offsets_of(consumer, 2) == [0, 1]


def test_seek_by_offset_to_the_ends_and_by_time(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group())) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert offsets_of(consumer, 3) == [0, 1, 2]
        consumer.seek(TopicPartition(topic, 0, 15))
        assert offsets_of(consumer, 2) == [15, 16]
        assert consumer.position([TopicPartition(topic, 0)])[0].offset == 17
        consumer.seek(TopicPartition(topic, 0, OFFSET_BEGINNING))
        assert offsets_of(consumer, 1) == [0]
        consumer.seek(TopicPartition(topic, 0, OFFSET_END))
        assert consumer.consume(1, 0.5) == []

        at = [TopicPartition(topic, 0, BASE_TIMESTAMP_MS + 12)]
        (found,) = consumer.offsets_for_times(at, TIMEOUT)
        assert found.offset == 12
        consumer.seek(found)
        assert offsets_of(consumer, 1) == [12]
        (after,) = consumer.offsets_for_times(
            [TopicPartition(topic, 0, BASE_TIMESTAMP_MS + COUNT)], TIMEOUT
        )
        assert after.offset == OFFSET_END


def test_watermarks_and_lag(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group())) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.commit(offsets=[TopicPartition(topic, 0, 8)], asynchronous=False)

        low, high = consumer.get_watermark_offsets(partition, TIMEOUT)

        assert (low, high) == (0, COUNT)
        assert high - committed(consumer, topic).offset == COUNT - 8


def test_commit_for_an_unknown_topic_is_refused(
    new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group())) as consumer:
        unknown = TopicPartition("no-such-topic-for-commits", 0, 1)
        with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
            consumer.commit(offsets=[unknown], asynchronous=False)
