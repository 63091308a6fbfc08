"""A broker on the event loop of its caller, and on no other."""

from __future__ import annotations

import asyncio
import threading

import pytest

from broker.testing import EmbeddedBroker, EmbeddedBrokerError, ErrorCode, Produce


def test_the_callers_loop_hosts_it() -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def test() -> None:
        threads = threading.active_count()
        async with EmbeddedBroker() as broker:
            assert threading.active_count() >= threads
            await broker.create_topic("orders")
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
            await producer.start()
            fault = await broker.fail(Produce, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=1)
            await producer.send_and_wait("orders", b"one")
            assert await fault.count() == 1
            async with await broker.drop_answer(Produce, times=1) as dropped:
                await producer.send_and_wait("orders", b"two")
                assert await dropped.count() == 1
            await producer.stop()
            consumer = AIOKafkaConsumer(
                "orders",
                bootstrap_servers=broker.bootstrap_servers,
                group_id="readers",
                auto_offset_reset="earliest",
            )
            await consumer.start()
            assert (await consumer.getone()).value == b"one"
            await consumer.commit()
            await broker.wait_for("readers", lag=2)
            await consumer.stop()
            await broker.restart()
            stored = [record.value for record in await broker.records("orders")]
            assert stored == [b"one", b"two", b"two"]
            with pytest.raises(EmbeddedBrokerError, match="there is no orders-1"):
                await broker.records("orders", 1)

    asyncio.run(test())


def test_another_loop_than_its_own_is_told() -> None:
    """As when a fixture has the loop of the session, and a test one of its own."""
    made = EmbeddedBroker()
    one, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    broker = one.run_until_complete(made.__aenter__())
    with pytest.raises(EmbeddedBrokerError, match="started on, which is another one"):
        other.run_until_complete(broker.create_topic("orders"))
    one.run_until_complete(made.__aexit__())

    broker = one.run_until_complete(made.__aenter__())
    directory = broker._settings.directory
    _close_with_all(one)
    with pytest.raises(EmbeddedBrokerError, match="started on, which is closed"):
        other.run_until_complete(made.__aexit__())
    assert not directory.exists()
    other.close()


def _close_with_all(loop: asyncio.AbstractEventLoop) -> None:
    """As `asyncio.run` does in the end."""

    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    loop.run_until_complete(end())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_without_asyncio_it_is_told_what_to_do() -> None:
    starting = EmbeddedBroker().__aenter__()
    with pytest.raises(EmbeddedBrokerError, match="start the broker by with"):
        starting.send(None)
