"""Look-ups while the broker stops, or has just begun to lead what is to be searched."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.key_index.lookups import Lookups
from broker.key_index.request import read_request
from broker.key_index.topic_access import RefusedError
from broker.key_index.waiting_lookups import WaitingLookups
from controller.topics.topics import NewTopic
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.records.builder import NewRecord, build_batch
from storage.append.append_source import FROM_CLIENT
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from pathlib import Path

    from broker.partitions.partition import Partition

pytestmark = pytest.mark.process

TOPIC = "orders"
REQUEST = read_request(f"topic={TOPIC}&key=4711")


async def create_indexed(broker: OneBroker) -> None:
    """Create a topic whose records can be looked up."""
    new = NewTopic(TOPIC, configs={"key.index.enable": "true", "delivery.delay.enable": "true"})
    await broker.topics.create([new], broker.metadata.racks)
    await broker.metadata.wait_until(lambda: broker.metadata.topic(TOPIC) is not None)


def test_look_ups_fail_with_503_when_the_broker_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await create_indexed(broker)
        lookups = Lookups(broker.services, broker.parts.key_index.indexer)
        loop = asyncio.get_running_loop()
        under_way = loop.create_task(lookups.find(REQUEST, "127.0.0.1"))
        waiting = loop.create_task(lookups.find(REQUEST, "127.0.0.1"))
        while not lookups._process.is_running:
            await asyncio.sleep(0)  # noqa: TID251

        await lookups.close()

        for lookup in (under_way, waiting):
            with pytest.raises(RefusedError, match="the broker stops") as refused:
                await lookup
            assert refused.value.status == "503 Service Unavailable"
        assert not lookups._process.is_running

    run_broker(tmp_path, scenario)
    assert not [one for one in caplog.records if "look-up failed" in one.getMessage()]


def lead_with_another(partition: Partition, epoch: int, leader: int = 0) -> None:
    """Begin a leader epoch in which what is appended is not committed before another has it."""
    both = [0, 1]
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=both,
        partition_epoch=epoch,
        replicas=both,
    )
    assert partition.assume(state)


def test_a_look_up_fails_when_leadership_is_lost_during_it(tmp_path: Path) -> None:
    """The next leader may have acknowledged what it did not find."""

    async def scenario(broker: OneBroker) -> None:
        await create_indexed(broker)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        lookups = Lookups(broker.services, broker.parts.key_index.indexer)
        search = asyncio.get_running_loop().create_task(lookups.find(REQUEST, "127.0.0.1"))
        while not lookups._process.is_running:
            await asyncio.sleep(0)  # noqa: TID251
        lead_with_another(partition, 1, leader=1)

        with pytest.raises(RefusedError, match="has another leader now") as refused:
            await search
        assert refused.value.status == "503 Service Unavailable"
        await lookups.close()

    run_broker(tmp_path, scenario)


def test_a_look_up_fails_before_the_high_watermark_is_known(tmp_path: Path) -> None:
    """An earlier leader may have acknowledged what this one may not show yet."""

    async def scenario(broker: OneBroker) -> None:
        await create_indexed(broker)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        lead_with_another(partition, 1)
        now_ms = broker.services.clock.now_ms()
        batch = memoryview(build_batch([NewRecord(now_ms, b"4711", b"one bicycle")]))
        partition.append_records(batch, 1, FROM_CLIENT, now_ms)
        lead_with_another(partition, 2)
        lookups = Lookups(broker.services, broker.parts.key_index.indexer)
        waiting = WaitingLookups(broker.services, broker.parts.deliveries)

        for looked_up in (
            lambda: lookups.find(REQUEST, "127.0.0.1"),
            lambda: waiting.listed(f"topic={TOPIC}", "127.0.0.1"),
        ):
            with pytest.raises(RefusedError, match="what is committed is not known yet") as refused:
                await looked_up()
            assert refused.value.status == "503 Service Unavailable"

        partition.log.advance_high_watermark(1)
        assert (await lookups.find(REQUEST, "127.0.0.1")).done.records == 1
        await lookups.close()

    run_broker(tmp_path, scenario)
