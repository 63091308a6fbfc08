"""Time that a test turns passes for a broker, and for all of a cluster, at once."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from aiokafka.errors import InvalidProducerEpoch, InvalidTxnState, ProducerFenced

from broker.embedded.stored_records import stored_records
from broker.testing import EmbeddedBroker, EmbeddedCluster
from tests.interop.embedded.conftest import produced, until

if TYPE_CHECKING:
    from broker.embedded.cluster.cluster_broker import ClusterBroker


def test_time_that_is_turned_passes_for_retention() -> None:
    with EmbeddedBroker({"log.retention.check.interval.ms": 60_000}) as broker:
        broker.create_topic("short", config={"retention.ms": 3_600_000})
        broker.create_topic("long", config={"retention.ms": 7 * 86_400_000})
        for topic in ("short", "long"):
            produced(broker.bootstrap_servers, topic, b"one")

        broker.advance(hours=2)

        until(lambda: broker.records("short") == [])
        assert len(broker.records("long")) == 1


def test_time_passes_for_a_broker_on_the_callers_loop() -> None:
    from aiokafka import AIOKafkaProducer

    async def test() -> None:
        loop = asyncio.get_running_loop()
        async with EmbeddedBroker({"log.retention.check.interval.ms": 60_000}) as broker:
            await broker.create_topic("short", config={"retention.ms": 3_600_000})
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.send_and_wait("short", b"one")
            began = loop.time()

            await broker.advance(hours=2)

            while await broker.records("short"):
                await asyncio.sleep(0.01)  # noqa: TID251 - a client of the broker
            assert loop.time() - began < 60, "the test's own loop was turned"

    asyncio.run(test())


def test_a_transaction_times_out_on_the_callers_loop() -> None:
    from aiokafka import AIOKafkaProducer

    async def test() -> None:
        async with EmbeddedBroker() as broker:
            await broker.create_topic("orders")
            producer = AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers, transactional_id="orders"
            )
            await producer.start()
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"open")
            assert len(await broker.records("orders")) == 1

            await broker.advance(seconds=120)

            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as other:
                await other.send_and_wait("orders", b"later")
            while not await broker.records("orders", committed_only=True):
                await asyncio.sleep(0.01)  # noqa: TID251 - a client of the broker
            stored = await broker.records("orders", committed_only=True)
            assert [record.value for record in stored] == [b"later"]
            with suppress(ProducerFenced, InvalidProducerEpoch, InvalidTxnState):
                await producer.abort_transaction()
            await producer.stop()

    asyncio.run(test())


@pytest.mark.slow
def test_retention_passes_for_all_replicas_of_a_cluster() -> None:
    with EmbeddedCluster(config={"log.retention.check.interval.ms": 60_000}) as cluster:
        cluster.create_topic("short", config={"retention.ms": 3_600_000})
        cluster.create_topic("long", config={"retention.ms": 7 * 86_400_000})
        for topic in ("short", "long"):
            assert produced(cluster.bootstrap_servers, topic, b"one") == [0]

        cluster.advance(hours=2)

        until(lambda: cluster.records("short") == [])
        assert len(cluster.records("long")) == 1
        until(lambda: all(_is_empty(one, "short") for one in cluster.brokers))
        assert produced(cluster.bootstrap_servers, "long", b"two", acks="all") == [0]


def test_transactions_time_out_wherever_they_are_coordinated() -> None:
    from confluent_kafka import Producer

    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", config={"min.insync.replicas": 2})
        producer = Producer(
            {
                **cluster.client_config,
                "transactional.id": "orders",
                "transaction.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce("orders", b"open")
        producer.flush(20)

        cluster.advance(seconds=90)

        assert produced(cluster.bootstrap_servers, "orders", b"later") == [0]
        until(lambda: _committed(cluster) == [b"later"])


def test_sessions_of_members_that_are_cut_off_end() -> None:
    from confluent_kafka import Consumer

    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders")
        config = {**cluster.client_config, "group.id": "readers", "log_level": 0}
        lost = Consumer({**config, "client.id": "lost", "session.timeout.ms": 45_000})
        lost.subscribe(["orders"])
        until(lambda: lost.poll(0.05) is None and lost.assignment())
        for broker in cluster.brokers:
            broker.disconnect(None, client_id="lost")

        cluster.advance(seconds=60)

        began = time.monotonic()
        other = Consumer({**config, "auto.offset.reset": "earliest"})
        other.subscribe(["orders"])
        until(lambda: other.poll(0.05) is None and other.assignment(), 30)
        assert time.monotonic() - began < 40, "the session of the lost one was waited for"
        other.close()
        for broker in cluster.brokers:
            broker.restore()
        lost.close()


def test_a_paused_broker_is_turned_too_and_loses_its_session() -> None:
    with EmbeddedCluster(config={"zookeeper.session.timeout.ms": 600_000}) as cluster:
        cluster.create_topic("orders")
        leader = cluster.leader_of("orders")
        with leader.paused():
            cluster.advance(hours=1)
            assert cluster.leader_of("orders") is not leader
        until(lambda: not leader.leads("orders"))
        cluster.restore()
        assert produced(cluster.bootstrap_servers, "orders", b"one") == [0]


def _is_empty(broker: ClusterBroker, topic: str) -> bool:
    return stored_records(broker.ask("read", topic, 0, False)) == []


def _committed(cluster: EmbeddedCluster) -> list[bytes | None]:
    return [record.value for record in cluster.records("orders", committed_only=True)]
