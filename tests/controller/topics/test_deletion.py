"""Deletions that meet other changes while the controller is busy with something else."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import controller.controller
from controller.brokers.registration import create_skeleton, register_broker
from controller.controller import Controller
from controller.partitions.partition_growth import PartitionGrowth
from controller.topics.topics import Chance, CreatedTopic, NewTopic, TopicCommands
from controller.znodes import (
    BrokerRegistration,
    Endpoint,
    TopicAssignment,
    decode_topic,
    encode_topic,
    state_path,
    topic_path,
)
from tests.controller.breaking_store import BreakingStore
from tests.controller.harness import NOW_MS, Cluster, NotingChannels, run_cluster, turns
from tests.controller.memory_store import MemoryEnsemble, MemoryStore
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from controller.active_controller import ActiveController


@asynccontextmanager
async def busy_controller(cluster: Cluster) -> AsyncIterator[None]:
    """Keep the controller busy, so that other events wait."""
    free = asyncio.Event()

    async def work(_: ActiveController) -> None:
        await free.wait()

    member = cluster.members[0].controller
    working = asyncio.get_running_loop().create_task(member.perform("something else", work))
    await turns()
    yield
    await turns()
    free.set()
    await working
    await turns(100)


async def create(cluster: Cluster, *names: str) -> None:
    topics = [NewTopic(name, 2, 1) for name in names]
    results = await cluster.topics.create(topics, cluster.racks)
    assert all(isinstance(result, CreatedTopic) for result in results.values())


async def leftovers(cluster: Cluster) -> tuple[list[str], list[str], list[str]]:
    return (
        await cluster.store.children("/brokers/topics"),
        await cluster.store.children("/config/topics"),
        await cluster.store.children("/admin/delete_topics"),
    )


def test_a_topic_that_grows_and_goes_behind_another_deletion_goes() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "first", "second")
        await turns()
        async with busy_controller(cluster):
            await cluster.topics.delete(["first"])
            await cluster.topics.grow(PartitionGrowth("second", 5), cluster.racks)
            await cluster.topics.delete(["second"])
        assert await leftovers(cluster) == ([], [], [])

    run_cluster(scenario, 0, 1)


def test_a_topic_that_grew_as_its_deletion_began_to_wait_for_a_broker_goes_when_that_is_back() -> (
    None
):
    async def scenario(cluster: Cluster) -> None:
        await cluster.topics.create([NewTopic("wide", 1, 2)], cluster.racks)
        await turns()
        await cluster.kill(1)
        await cluster.topics.delete(["wide"])
        await turns()
        node = await cluster.store.get(topic_path("wide"))
        known = decode_topic("wide", node.data)
        grown = TopicAssignment({**known.partitions, 1: (0, 1)}, known.topic_id)
        await cluster.store.set(topic_path("wide"), encode_topic(grown))
        await turns()
        assert (await leftovers(cluster))[0] == ["wide"]
        await cluster.add(1)
        await turns(100)
        assert await leftovers(cluster) == ([], [], [])

    run_cluster(scenario, 0, 1)


def test_a_topic_that_came_and_goes_behind_another_deletion_goes() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "first")
        await turns()
        async with busy_controller(cluster):
            await cluster.topics.delete(["first"])
            await turns()
            await create(cluster, "second")
            await cluster.topics.delete(["second"])
        assert await leftovers(cluster) == ([], [], [])

    run_cluster(scenario, 0)


async def until_led(store: BreakingStore, topic: str, partitions: int) -> None:
    paths = [state_path(topic, index) for index in range(partitions)]
    while None in await MemoryStore.get_many(store, paths):
        await turns(1)


def test_partitions_whose_states_cannot_be_read_at_first_are_led_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0.01)

    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = BreakingStore(ensemble)
        await create_skeleton(store)
        await register_broker(store, 0, BrokerRegistration((Endpoint("PLAINTEXT", "h", 1),)))
        member = Controller(0, store, NotingChannels(), lambda: NOW_MS, one_step_at_a_time)
        task = asyncio.get_running_loop().create_task(member.run())
        await member.wait_until_ready()
        chance = Chance(lambda _: 0, lambda n: b"\x05" * n)
        topics = TopicCommands(ensemble.connect(), chance, 10, one_step_at_a_time)
        broken: list[str] = []

        def breaks_once_at_each_state(path: str) -> bool:
            is_first = path.endswith("/state") and path not in broken
            broken.extend([path] * is_first)
            return is_first

        store.breaks_at = breaks_once_at_each_state
        await topics.create([NewTopic("orders")], {0: None})
        await until_broken_off(store, broken, 1)
        await until_led(store, "orders", 1)
        await topics.grow(PartitionGrowth("orders", 2), {0: None})
        await until_broken_off(store, broken, 2)
        await until_led(store, "orders", 2)
        task.cancel()

    asyncio.run(scenario())


async def until_broken_off(store: BreakingStore, broken: list[str], times: int) -> None:
    while len(broken) < times:
        await turns(1)
    await store.wait_until_reachable()
