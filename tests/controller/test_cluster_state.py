"""Configurations, producer ids, registration, adopted topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from controller.brokers.dynamic_configs import DynamicConfigs, read_config
from controller.brokers.producer_ids import allocate_producer_ids
from controller.brokers.registration import (
    create_skeleton,
    generate_broker_id,
    obtain_cluster_id,
    register_broker,
)
from controller.metadata_store.store import MetadataStore, NodeExistsError, NoNodeError
from controller.topics.topic_import import FoundPartition, adopt_topics
from controller.znodes import BrokerRegistration, Endpoint, decode_state, state_path
from tests.controller.harness import Cluster, run_cluster, turns
from tests.controller.memory_store import MemoryEnsemble
from tests.support.written_configs import write_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.brokers.dynamic_configs import Listener

LISTENER = BrokerRegistration((Endpoint("PLAINTEXT", "h", 1),))


def hearing(heard: list[tuple[str, str, Mapping[str, str]]]) -> Listener:
    async def hear(entity_type: str, entity: str, values: Mapping[str, str]) -> None:
        heard.append((entity_type, entity, values))

    return hear


def test_config_change_reaches_every_broker_in_order() -> None:
    async def scenario(cluster: Cluster) -> None:
        heard: list[tuple[str, str, Mapping[str, str]]] = []
        refreshes: list[None] = []
        await write_config(cluster.store, "topics", "old", {"a": "0"})
        configs = DynamicConfigs(cluster.store, lambda: refreshes.append(None))
        configs.on_change(hearing(heard))
        await configs.start()
        assert configs.topic_overrides("old") == {"a": "0"}
        assert heard == []
        await write_config(cluster.store, "topics", "orders", {"retention.ms": "1"})
        await write_config(cluster.store, "brokers", "0", {"x": "y"})
        await turns(2)
        assert refreshes
        await configs.refresh()
        assert heard == [("topics", "orders", {"retention.ms": "1"}), ("brokers", "0", {"x": "y"})]
        assert configs.topic_overrides("orders") == {"retention.ms": "1"}
        assert await read_config(cluster.store, "topics", "orders") == {"retention.ms": "1"}
        await configs.refresh()
        assert len(heard) == 2

    run_cluster(scenario, 0)


def test_one_config_change_is_notified_once_despite_many_refreshes() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        heard: list[tuple[str, str, Mapping[str, str]]] = []
        refreshes: list[None] = []
        configs = DynamicConfigs(store, lambda: refreshes.append(None))
        configs.on_change(hearing(heard))
        await configs.start()
        for _ in range(5):
            await configs.refresh()
        await write_config(store, "brokers", "0", {"x": "y"})
        await turns(2)
        assert len(refreshes) == 1
        await asyncio.gather(*(configs.refresh() for _ in range(3)))
        assert heard == [("brokers", "0", {"x": "y"})]
        await write_config(store, "brokers", "0", {"x": "z"})
        await turns(2)
        assert len(refreshes) == 2

    asyncio.run(scenario())


def test_a_reading_that_failed_leaves_the_watch_to_the_next_one() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        refreshes: list[None] = []
        configs = DynamicConfigs(store, lambda: refreshes.append(None))
        with pytest.raises(NoNodeError):
            await configs.start()
        await create_skeleton(store)
        await configs.start()
        await write_config(store, "brokers", "0", {"x": "y"})
        await turns(2)
        assert len(refreshes) == 1

    asyncio.run(scenario())


def test_generated_broker_ids_follow_the_reserved_ones() -> None:
    async def scenario(cluster: Cluster) -> None:
        ids = [await generate_broker_id(cluster.store, 1000) for _ in range(3)]
        assert ids == [1001, 1002, 1003]

    run_cluster(scenario, 0)


def test_new_topics_config_is_read_on_demand_and_forgotten() -> None:
    async def scenario(cluster: Cluster) -> None:
        configs = DynamicConfigs(cluster.store)
        await configs.start()
        await cluster.store.create("/config/topics/t", b'{"version":1,"config":{"a":"b"}}')
        await configs.load_topics(["t", "unknown"])
        assert configs.topic_overrides("t") == {"a": "b"}
        configs.forget_topics(["t"])
        assert configs.topic_overrides("t") == {}

    run_cluster(scenario, 0)


def test_producer_id_blocks_are_given_out_once() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        stores: list[MetadataStore] = [ensemble.connect() for _ in range(5)]
        await create_skeleton(stores[0])
        blocks = await asyncio.gather(
            *(allocate_producer_ids(store, broker) for broker, store in enumerate(stores * 4))
        )
        assert sorted(block.start for block in blocks) == [1000 * n for n in range(20)]

    asyncio.run(scenario())


def test_first_proposal_becomes_the_cluster_id() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        await create_skeleton(store)
        assert await obtain_cluster_id(store, "first") == "first"
        assert await obtain_cluster_id(store, "second") == "first"

    asyncio.run(scenario())


def test_broker_id_is_held_by_one_session_and_its_epoch_grows() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        one, two = ensemble.connect(), ensemble.connect()
        await create_skeleton(one)
        first = await register_broker(one, 3, LISTENER)
        assert (await one.get("/brokers/ids/3")).version == 1
        with pytest.raises(NodeExistsError):
            await register_broker(two, 3, LISTENER)
        await one.close()
        assert await register_broker(two, 3, LISTENER) > first

    asyncio.run(scenario())


def test_found_logs_become_topics_that_this_broker_leads_above_their_epochs() -> None:
    topic_id = UUID(int=77 << 64)

    async def scenario(cluster: Cluster) -> None:
        found = [
            FoundPartition("t", 0, topic_id, latest_epoch=8, highest_producer_id=4017),
            FoundPartition("t", 2, topic_id),
            FoundPartition("__consumer_offsets", 0, UUID(int=5), 1),
        ]
        configs = {"__consumer_offsets": {"cleanup.policy": "compact"}}
        assert await adopt_topics(cluster.store, 0, found, configs) == ["__consumer_offsets", "t"]
        assert await adopt_topics(cluster.store, 0, found, configs) == []
        await turns()
        context = cluster.members[0].controller.context
        assert context is not None
        assert context.topic_ids["t"] == topic_id
        epochs = []
        for partition in range(3):
            path = state_path("t", partition)
            state = decode_state(path, (await cluster.store.get(path)).data)
            assert (state.leader, state.in_sync_replicas) == (0, (0,))
            epochs.append(state.leader_epoch)
        assert epochs == [9, 0, 0]
        assert await allocate_producer_ids(cluster.store, 0) == range(5000, 6000)
        assert (
            await read_config(cluster.store, "topics", "__consumer_offsets")
            == (configs["__consumer_offsets"])
        )

    run_cluster(scenario, 0)
