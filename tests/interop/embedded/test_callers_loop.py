"""A broker on the event loop of its caller, and on no other."""

from __future__ import annotations

import asyncio
import threading

import pytest

from broker.testing import EmbeddedBroker, EmbeddedBrokerError, ErrorCode, Produce


def test_a_broker_runs_on_the_callers_event_loop() -> None:
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


def test_a_broker_on_the_callers_loop_has_the_same_interface() -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import MessageSizeTooLargeError, RequestTimedOutError

    async def test() -> None:
        async with EmbeddedBroker({"num.partitions": 2}, security="sasl_plaintext") as broker:
            assert broker.config["num.partitions"] == "2"
            assert broker.log_dir.is_dir()
            assert broker.security is not None
            assert broker.kafka_python_config["sasl_plain_username"] == broker.security.username
            assert (await broker.is_running(), await broker.failure()) == (True, None)
            await broker.create_topic("orders")
            async with AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers,
                client_id="sick",
                request_timeout_ms=300,
                security_protocol=broker.security.protocol,
                sasl_mechanism="PLAIN",
                sasl_plain_username=broker.security.username,
                sasl_plain_password=broker.security.password,
            ) as producer:
                error = ErrorCode.MESSAGE_TOO_LARGE
                async with (
                    await broker.fail(Produce, error, client_id="sick") as sick,
                    await broker.fail(Produce, error, client_id="well") as well,
                ):
                    with pytest.raises(MessageSizeTooLargeError):
                        await producer.send_and_wait("orders", b"one")
                    assert (await sick.count(), await well.count()) == (1, 0)
                await broker.drop_answer(Produce, times=1, disconnects=False)
                with pytest.raises(RequestTimedOutError):
                    await producer.send_and_wait("orders", b"two")
            assert {record.value for record in await broker.records("orders")} == {b"two"}
            assert len(await broker.requests_of(Produce)) >= 2
            await broker.kill()
            assert not await broker.is_running()

    asyncio.run(test())


def test_calls_under_way_fail_when_the_broker_is_killed() -> None:
    async def test() -> None:
        async with EmbeddedBroker() as broker:
            creation = broker.create_topic("orders")
            error, _ = await asyncio.gather(creation, broker.kill(), return_exceptions=True)
            assert isinstance(error, EmbeddedBrokerError)
            assert "the broker stops" in str(error)

    asyncio.run(test())


def test_a_call_from_another_event_loop_is_refused() -> None:
    """A fixture may have the loop of the session, and a test one of its own."""
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
    """Close the loop as `asyncio.run` does in the end."""

    async def end() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    loop.run_until_complete(end())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_a_start_outside_asyncio_suggests_the_with_statement() -> None:
    starting = EmbeddedBroker().__aenter__()
    with pytest.raises(EmbeddedBrokerError, match="start the broker by with"):
        starting.send(None)
