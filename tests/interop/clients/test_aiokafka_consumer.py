"""aiokafka: every way to commit, to start and to seek, and what lag it sees."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Sending, numbered_records

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.interop.conftest import NewTopicFunction

COUNT = 20
TIMEOUT = 120.0


@pytest.fixture
def topic(bootstrap: str, new_topic: NewTopicFunction) -> str:
    """Return a topic of one partition that holds `COUNT` records."""
    name = new_topic()
    confluent.produce(bootstrap, name, numbered_records(COUNT), Sending(style="callback"))
    return name


@asynccontextmanager
async def consumer_of(bootstrap: str, *topics: str, **config: Any) -> AsyncIterator[Any]:
    """Start a consumer and stop it afterwards."""
    wanted = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **config}
    consumer = AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, **wanted)
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def offsets_of(consumer: Any, count: int) -> list[int]:
    """Read `count` records and return their offsets."""
    rows = [await asyncio.wait_for(consumer.getone(), TIMEOUT) for _ in range(count)]
    return [row.offset for row in rows]


def test_sync_commit_is_where_the_group_goes_on(
    bootstrap: str, topic: str, new_group: Callable[[], str]
) -> None:
    group, partition = new_group(), TopicPartition(topic, 0)

    async def scenario() -> None:
        async with consumer_of(bootstrap, topic, group_id=group) as consumer:
            assert await offsets_of(consumer, 7) == list(range(7))
            await consumer.commit()
        async with consumer_of(bootstrap, topic, group_id=group) as consumer:
            assert await consumer.committed(partition) == 7
            assert await offsets_of(consumer, COUNT - 7) == list(range(7, COUNT))

    asyncio.run(scenario())


def test_specific_offset_is_committed_with_metadata(
    bootstrap: str, topic: str, new_group: Callable[[], str]
) -> None:
    group, partition = new_group(), TopicPartition(topic, 0)

    async def scenario() -> None:
        async with consumer_of(bootstrap, topic, group_id=group) as consumer:
            await consumer.commit({partition: OffsetAndMetadata(3, "half way")})
        async with consumer_of(bootstrap, topic, group_id=group) as consumer:
            assert await consumer.committed(partition) == 3
            assert await offsets_of(consumer, 2) == [3, 4]

    asyncio.run(scenario())


def test_auto_commit_is_done_on_stop(
    bootstrap: str, topic: str, new_group: Callable[[], str]
) -> None:
    group, partition = new_group(), TopicPartition(topic, 0)

    async def scenario() -> None:
        automatic = {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
        async with consumer_of(bootstrap, topic, group_id=group, **automatic) as consumer:
            await offsets_of(consumer, 6)
        async with consumer_of(bootstrap, topic, group_id=group) as consumer:
            assert await consumer.committed(partition) == 6

    asyncio.run(scenario())


def test_seek_by_offset_to_the_ends_and_by_time(bootstrap: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    async def scenario() -> None:
        async with consumer_of(bootstrap) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, 15)
            assert await offsets_of(consumer, 2) == [15, 16]
            await consumer.seek_to_beginning(partition)
            assert await offsets_of(consumer, 1) == [0]
            await consumer.seek_to_end(partition)
            assert await consumer.position(partition) == COUNT
            times = {partition: BASE_TIMESTAMP_MS + 12}
            found = (await consumer.offsets_for_times(times))[partition]
            assert (found.offset, found.timestamp) == (12, BASE_TIMESTAMP_MS + 12)
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: COUNT}

    asyncio.run(scenario())


def test_latest_sees_only_what_comes_later(
    bootstrap: str, topic: str, new_group: Callable[[], str]
) -> None:
    partition = TopicPartition(topic, 0)

    async def scenario() -> None:
        late = {"group_id": new_group(), "auto_offset_reset": "latest"}
        async with consumer_of(bootstrap, topic, **late) as consumer:
            assert await consumer.position(partition) == COUNT
            await asyncio.to_thread(
                confluent.produce, bootstrap, topic, numbered_records(1), Sending()
            )
            assert await offsets_of(consumer, 1) == [COUNT]

    asyncio.run(scenario())
