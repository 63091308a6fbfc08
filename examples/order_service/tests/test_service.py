"""The service against a broker that loses answers, refuses, and restarts."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from service import run

from broker.testing import ErrorCode, Produce
from config import Settings

ITEMS = [f"bicycle {number}" for number in range(20)]


@pytest.fixture
def settings(kafka_broker, kafka_topic):
    shipments = f"{kafka_topic}-shipments"
    kafka_broker.create_topic(shipments)
    yield Settings(kafka_broker.bootstrap_servers, kafka_topic, shipments, f"{kafka_topic}-group")
    kafka_broker.delete_topic(shipments)


@asynccontextmanager
async def running(settings):
    service = asyncio.create_task(run(settings))
    try:
        yield
    finally:
        service.cancel()
        with suppress(asyncio.CancelledError):
            await service


async def order(settings, items):
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers) as producer:
        for item in items:
            await producer.send_and_wait(settings.orders, json.dumps({"item": item}).encode())


async def shipped(settings, count):
    """What has been shipped for good once there are so many shipments."""
    consumer = AIOKafkaConsumer(
        settings.shipments,
        bootstrap_servers=settings.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer:
        found = [await asyncio.wait_for(consumer.getone(), 30) for _ in range(count)]
    return [json.loads(one.value)["ships"] for one in found]


async def test_each_order_is_shipped(settings):
    await order(settings, ITEMS)
    async with running(settings):
        assert await shipped(settings, len(ITEMS)) == ITEMS


async def test_lost_answers_ship_nothing_twice(kafka_broker, settings):
    await order(settings, ITEMS)
    with kafka_broker.drop_answer(Produce, times=3, topic=settings.shipments) as lost:
        async with running(settings):
            assert await shipped(settings, len(ITEMS)) == ITEMS
            kafka_broker.wait_for(settings.group)
    assert lost.count > 0
    await order(settings, ["the last"])
    async with running(settings):
        assert await shipped(settings, len(ITEMS) + 1) == [*ITEMS, "the last"]


async def test_a_refusal_is_tried_again(kafka_broker, settings):
    await order(settings, ITEMS)
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with kafka_broker.fail(Produce, error, times=2, topic=settings.shipments) as refused:
        async with running(settings):
            assert await shipped(settings, len(ITEMS)) == ITEMS
    assert refused.count == 2


async def test_a_restart_of_the_broker_forgets_no_order(kafka_broker, settings):
    async with running(settings):
        await order(settings, ITEMS[:10])
        assert await shipped(settings, 10) == ITEMS[:10]
        await asyncio.to_thread(kafka_broker.restart)
        await order(settings, ITEMS[10:])
        assert await shipped(settings, len(ITEMS)) == ITEMS
