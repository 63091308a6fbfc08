"""kafka-python: every way to commit, to start and to seek, and what lag it sees."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import NoOffsetForPartitionError
from kafka.structs import OffsetAndMetadata

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Sending, numbered_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.interop.conftest import NewTopicFunction

    NewConsumer = Callable[..., Any]

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
    """Return a consumer of a group: `new_consumer(group, topic, auto_offset_reset="latest")`."""

    def create(group: str, *topics: str, **config: Any) -> Any:
        wanted = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **config}
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, **wanted)
        if topics:
            consumer.subscribe(topics)
            # One in fifty of kafka-python 3.0.12 joins before it knows its topics, and is then
            # never given any (`tests.interop.workloads.member`).
            deadline = time.monotonic() + TIMEOUT
            while not all(map(consumer.partitions_for_topic, topics)):
                assert time.monotonic() < deadline, topics
                time.sleep(0.01)
        return consumer

    return create


def offsets_of(consumer: Any, count: int) -> list[int]:
    """Poll `count` records, no more, and return their offsets."""
    offsets: list[int] = []
    deadline = time.monotonic() + TIMEOUT
    while len(offsets) < count:
        assert time.monotonic() < deadline, f"only {offsets} came"
        polled = consumer.poll(timeout_ms=500, max_records=count - len(offsets))
        offsets += [row.offset for batch in polled.values() for row in batch]
    return offsets


def test_sync_commit_is_where_the_group_goes_on(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    group, partition = new_group(), TopicPartition(topic, 0)
    with closing(new_consumer(group, topic)) as consumer:
        assert offsets_of(consumer, 7) == list(range(7))
        consumer.commit()

    with closing(new_consumer(group, topic)) as consumer:
        assert consumer.committed(partition) == 7
        assert offsets_of(consumer, COUNT - 7) == list(range(7, COUNT))


def test_async_commit_calls_back(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    partition = TopicPartition(topic, 0)
    said: list[tuple[Any, Any]] = []
    with closing(new_consumer(new_group(), topic)) as consumer:
        offsets_of(consumer, 5)
        consumer.commit_async(callback=lambda offsets, outcome: said.append((offsets, outcome)))
        deadline = time.monotonic() + TIMEOUT
        while not said and time.monotonic() < deadline:
            consumer.poll(timeout_ms=50, max_records=1)

        ((offsets, outcome),) = said
        assert offsets[partition].offset == 5
        assert not isinstance(outcome, Exception)
        assert consumer.committed(partition) == 5


def test_specific_offset_is_committed_with_metadata(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    group, partition = new_group(), TopicPartition(topic, 0)
    with closing(new_consumer(group)) as consumer:
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(3, "half way - ½", -1)})

    with closing(new_consumer(group, topic)) as consumer:
        found = consumer.committed(partition, metadata=True)
        assert (found.offset, found.metadata) == (3, "half way - ½")
        assert offsets_of(consumer, 2) == [3, 4]


def test_auto_commit_is_done_in_the_background_and_on_close(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    group, partition = new_group(), TopicPartition(topic, 0)
    automatic = {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
    with (
        closing(new_consumer(group, topic, **automatic)) as consumer,
        closing(new_consumer(group)) as watcher,
    ):
        offsets_of(consumer, 6)
        deadline = time.monotonic() + TIMEOUT
        consumer.pause(partition)
        while watcher.committed(partition) != 6:
            assert time.monotonic() < deadline
            consumer.poll(timeout_ms=50)
        consumer.resume(partition)
        offsets_of(consumer, 4)

    with closing(new_consumer(group)) as consumer:
        assert consumer.committed(partition) == 10


def test_auto_offset_reset_earliest_latest_and_none(
    bootstrap: str, topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    with closing(new_consumer(new_group(), topic)) as consumer:
        assert offsets_of(consumer, 1) == [0]

    with closing(new_consumer(new_group(), topic, auto_offset_reset="latest")) as consumer:
        deadline = time.monotonic() + TIMEOUT
        while not consumer.assignment():
            assert time.monotonic() < deadline
            assert consumer.poll(timeout_ms=100) == {}
        assert consumer.position(TopicPartition(topic, 0)) == COUNT
        confluent.produce(bootstrap, topic, numbered_records(1), Sending())
        assert offsets_of(consumer, 1) == [COUNT]

    with (
        closing(new_consumer(new_group(), topic, auto_offset_reset="none")) as consumer,
        pytest.raises(NoOffsetForPartitionError),
    ):
        offsets_of(consumer, 1)


def test_seek_by_offset_to_the_ends_and_by_time(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    partition = TopicPartition(topic, 0)
    with closing(new_consumer(new_group())) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 15)
        assert offsets_of(consumer, 2) == [15, 16]
        assert consumer.position(partition) == 17
        consumer.seek_to_beginning(partition)
        assert offsets_of(consumer, 1) == [0]
        consumer.seek_to_end(partition)
        assert consumer.position(partition) == COUNT

        times = {partition: BASE_TIMESTAMP_MS + 12}
        found = consumer.offsets_for_times(times)[partition]
        assert (found.offset, found.timestamp) == (12, BASE_TIMESTAMP_MS + 12)
        consumer.seek(partition, found.offset)
        assert offsets_of(consumer, 1) == [12]
        late = {partition: BASE_TIMESTAMP_MS + COUNT}
        assert consumer.offsets_for_times(late)[partition] is None


def test_lag_is_end_minus_committed(
    topic: str, new_consumer: NewConsumer, new_group: Callable[[], str]
) -> None:
    partition = TopicPartition(topic, 0)
    with closing(new_consumer(new_group(), topic)) as consumer:
        offsets_of(consumer, 8)
        consumer.commit()

        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: COUNT}
        assert consumer.end_offsets([partition])[partition] - consumer.committed(partition) == 12
        assert consumer.highwater(partition) == COUNT
