"""Topics created after their client was answered that they are not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import broker.handlers.topics.create_topics
import broker.handlers.topics.delete_topics  # noqa: F401  (the handlers register themselves)
from controller.metadata_store.store import SetData
from controller.znodes import TopicAssignment, decode_topic, encode_topic, topic_path
from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteTopicsRequest
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import codes, creation, new
from tests.controller.harness import turns
from tests.controller.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PATH = topic_path("orders")
OTHER_ID = UUID(int=77)


async def create_late(broker: OneBroker) -> asyncio.Event:
    """`orders` is written, but the store says so only when the event is set: too late.

    On a busy machine the time may be up before the write begins. Nothing is written then, and the
    client asks again.
    """
    broker.store.answers_writes = asyncio.Event()
    while await broker.store.exists(PATH) is None:
        answer = await broker.ask(creation(new("orders"), timeout_ms=1), 7)
        assert codes(answer) == {"orders": ErrorCode.REQUEST_TIMED_OUT}
        await turns(100)
    return broker.store.answers_writes


async def put_another_in_its_place(broker: OneBroker) -> None:
    """Delete and recreate the topic, unknown to this broker so far."""
    known = decode_topic("orders", (await broker.store.get(PATH)).data)
    other = encode_topic(TopicAssignment(known.partitions, OTHER_ID))
    await MemoryStore.multi_many(broker.store, [[SetData(PATH, other)]])


async def is_deleted(broker: OneBroker) -> bool:
    await turns(300)
    # A deletion goes on once the disk has forgotten the log.
    await asyncio.get_running_loop().run_in_executor(broker.disk_thread, int)
    await turns(300)
    return await broker.store.exists(PATH) is None


def test_a_topic_created_after_its_timeout_is_deleted_again(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        (await create_late(broker)).set()
        assert await is_deleted(broker)

    run_broker(tmp_path, scenario)


def test_a_late_topic_reported_as_existing_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        answers = await create_late(broker)
        again = await broker.ask(creation(new("orders")), 7)
        assert codes(again) == {"orders": ErrorCode.TOPIC_ALREADY_EXISTS}
        answers.set()
        assert not await is_deleted(broker)

    run_broker(tmp_path, scenario)
    assert "after their request timed out" not in caplog.text


def test_a_creation_not_begun_before_its_timeout_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        reads = broker.store.answers_reads = asyncio.Event()
        answer = await broker.ask(creation(new("orders"), timeout_ms=1), 7)
        assert codes(answer) == {"orders": ErrorCode.REQUEST_TIMED_OUT}
        reads.set()
        await turns(300)
        assert await broker.store.exists(PATH) is None

    run_broker(tmp_path, scenario)
    assert "after their request timed out" not in caplog.text


def test_another_topic_of_the_same_name_is_not_deleted(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        answers = await create_late(broker)
        await put_another_in_its_place(broker)
        answers.set()
        assert not await is_deleted(broker)

    run_broker(tmp_path, scenario)


def test_a_topic_deleted_by_its_id_is_not_another_of_the_same_name(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        topic_id = broker.metadata.topic_id("orders")
        await put_another_in_its_place(broker)
        topic = DeleteTopicsRequest.Topic(name=None, topic_id=topic_id)
        request = DeleteTopicsRequest(topics=[topic], timeout_ms=10_000)
        (answer,) = (await broker.ask(request, 6)).responses

        assert (answer.name, answer.topic_id) == (None, topic_id)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert not await is_deleted(broker)

    run_broker(tmp_path, scenario)
