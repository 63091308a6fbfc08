"""Replicas whose disk failed lead no more, though their broker lives (KIP-112)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import controller.controller
from controller.brokers.log_dir_events import PREFIX, announce_directory_failure
from controller.metadata_store.store import Create, Delete, SetData
from controller.topics.topics import NewTopic
from controller.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    LOG_DIR_EVENTS,
    PartitionState,
    decode_state,
    encode_controller,
    state_path,
)
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from tests.controller.breaking_store import BreakingStore
from tests.controller.harness import Cluster, run_cluster, turns

if TYPE_CHECKING:
    import pytest


async def create(cluster: Cluster, name: str, factor: int) -> None:
    await cluster.topics.create([NewTopic(name, 1, factor)], cluster.racks)
    await turns()


async def lose(cluster: Cluster, broker_id: int, *topics: str) -> None:
    """A disk of a broker fails, and the broker says so."""
    channels = cluster.members[0].channels
    channels.take()
    channels.lost.update((broker_id, topic) for topic in topics)
    await announce_directory_failure(cluster.store, broker_id)
    await turns(60)


async def stored(cluster: Cluster, topic: str) -> PartitionState:
    path = state_path(topic, 0)
    return decode_state(path, (await cluster.store.get(path)).data)


def told(cluster: Cluster, topic: str) -> UpdateMetadataPartitionState:
    """The last that brokers heard of a topic."""
    return [
        state
        for _, request in cluster.members[0].channels.sent
        if isinstance(request, UpdateMetadataRequest)
        for one in request.topic_states
        if one.topic_name == topic
        for state in one.partition_states
    ][-1]


def test_the_only_replica_leaves_its_partition_without_a_leader() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 1)
        await create(cluster, "kept", 1)
        await lose(cluster, 0, "orders")

        state = await stored(cluster, "orders")
        assert (state.leader, state.leader_epoch, state.in_sync_replicas) == (-1, 1, (0,))
        assert told(cluster, "orders").leader == -1
        assert told(cluster, "orders").offline_replicas == [0]
        assert (await stored(cluster, "kept")).leader == 0
        assert await cluster.store.children(LOG_DIR_EVENTS) == []

    run_cluster(scenario, 0)


def test_another_replica_in_sync_takes_over() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 2)
        before = await stored(cluster, "orders")
        await lose(cluster, before.leader, "orders")

        state = await stored(cluster, "orders")
        assert state.leader == 1 - before.leader
        assert state.in_sync_replicas == (state.leader,)
        assert told(cluster, "orders").offline_replicas == [before.leader]
        stops = [
            (broker_id, request)
            for broker_id, request in cluster.members[0].channels.sent
            if isinstance(request, StopReplicaRequest)
        ]
        assert [broker_id for broker_id, _ in stops] == [before.leader]

    run_cluster(scenario, 0, 1)


def test_a_follower_leaves_the_in_sync_set() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 2)
        leader = (await stored(cluster, "orders")).leader
        await lose(cluster, 1 - leader, "orders")

        state = await stored(cluster, "orders")
        assert (state.leader, state.in_sync_replicas) == (leader, (leader,))

    run_cluster(scenario, 0, 1)


def test_a_broker_that_starts_again_with_a_mended_disk_leads_again() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.topics.create([NewTopic("orders", assignment={0: (1,)})], cluster.racks)
        await turns()
        await lose(cluster, 1, "orders")
        assert (await stored(cluster, "orders")).leader == -1

        await cluster.kill(1)
        cluster.members[0].channels.lost.clear()
        await cluster.add(1)
        await turns(60)

        assert (await stored(cluster, "orders")).leader == 1
        assert told(cluster, "orders").offline_replicas == []

    run_cluster(scenario, 0, 1)


def test_a_new_controller_finds_offline_replicas_not_reported_to_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 1)
        leader = (await stored(cluster, "orders")).leader
        for member in cluster.members.values():
            member.channels.lost.add((leader, "orders"))
        await cluster.members[0].controller.retire()
        await turns(60)

        assert cluster.members[1].controller.is_active
        assert (await stored(cluster, "orders")).leader == -1

    run_cluster(scenario, 0, 1)


def test_announcements_are_there_until_the_controller_has_acted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0)

    async def scenario(cluster: Cluster) -> None:
        cluster.connect = lambda: BreakingStore(cluster.ensemble)
        for broker_id in (0, 1):
            await cluster.add(broker_id)
        store = cluster.members[0].store
        assert isinstance(store, BreakingStore)
        for broker_id, topic in enumerate(("orders", "payments")):
            new = NewTopic(topic, assignment={0: (broker_id,)})
            await cluster.topics.create([new], cluster.racks)
        await turns()
        cluster.members[0].channels.lost.update(((0, "orders"), (1, "payments")))
        store.breaks_at = lambda path: path == f"{PREFIX}0000000001" and not store.has_broken
        await cluster.store.multi(
            [
                Create(PREFIX, b'{"version":1,"broker":%d,"event":1}' % broker_id, sequence=True)
                for broker_id in (0, 1)
            ]
        )
        while not store.has_broken:
            await turns(1)
        await store.wait_until_reachable()

        while await cluster.store.children(LOG_DIR_EVENTS):
            await turns(1)
        await turns()

        assert [(await stored(cluster, topic)).leader for topic in ("orders", "payments")] == [
            -1,
            -1,
        ]

    run_cluster(scenario)


def test_a_deposed_controller_leaves_announcements_to_its_successor() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.store.multi(
            [
                Create(f"{PREFIX}0000000000", b'{"version":1,"broker":0,"event":1}'),
                Delete(CONTROLLER),
                Create(CONTROLLER, encode_controller(8, 0), ephemeral=True),
                SetData(CONTROLLER_EPOCH, b"7"),
            ]
        )
        await turns()

        assert not cluster.members[0].controller.is_active
        assert await cluster.store.children(LOG_DIR_EVENTS) == ["log_dir_event_0000000000"]

    run_cluster(scenario, 0)
