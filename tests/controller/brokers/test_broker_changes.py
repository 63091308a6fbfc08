"""Brokers that die, come back, or announce that they go: who leads then, and who is in sync."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from controller.context import TopicPartition
from controller.topics.topics import NewTopic
from controller.znodes import NO_LEADER, PartitionState, decode_state, state_path
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.harness import Cluster, run_cluster, turns
from tests.controller.partitions.test_in_sync_changes import propose

if TYPE_CHECKING:
    from controller.controller import Controller
    from protocol.schema import Request

AT = TopicPartition("orders", 0)


async def create(cluster: Cluster, *replicas: int, **configs: str) -> None:
    """`orders` with one partition on these brokers."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    topic = NewTopic(AT.topic, assignment={0: replicas}, configs=named)
    await cluster.topics.create([topic], cluster.racks)
    await turns()


async def stored(cluster: Cluster) -> PartitionState:
    node = await cluster.store.get(state_path(*AT))
    return decode_state("", node.data)


async def leader_and_in_sync(cluster: Cluster) -> tuple[int, tuple[int, ...]]:
    state = await stored(cluster)
    return state.leader, state.in_sync_replicas


def of_kind(sent: list[tuple[int, Request]], kind: type[Request]) -> list[tuple[int, Request]]:
    return [(broker_id, request) for broker_id, request in sent if isinstance(request, kind)]


def epoch_of(cluster: Cluster, broker_id: int) -> int:
    context = cluster.members[0].controller.context
    assert context is not None
    return context.live_brokers[broker_id].epoch


def controller(cluster: Cluster) -> Controller:
    return cluster.members[0].controller


def test_next_in_sync_replica_leads_after_a_leader_died() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2, 0)
        channels = cluster.members[0].channels
        channels.take()

        await cluster.kill(1)

        assert await leader_and_in_sync(cluster) == (2, (2, 0))
        sent = channels.take()
        told = {broker_id for broker_id, _ in of_kind(sent, LeaderAndIsrRequest)}
        assert told == {0, 2}
        (request,) = [r for b, r in of_kind(sent, LeaderAndIsrRequest) if b == 2]
        assert isinstance(request, LeaderAndIsrRequest)
        (state,) = request.topic_states[0].partition_states
        assert (state.leader, state.leader_epoch, state.isr) == (2, 1, [2, 0])
        live = {
            broker.id
            for _, update in of_kind(sent, UpdateMetadataRequest)
            if isinstance(update, UpdateMetadataRequest)
            for broker in update.live_brokers
        }
        assert live == {0, 2}

    run_cluster(scenario, 0, 1, 2)


def test_dead_follower_leaves_the_in_sync_set() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2, 0)
        await cluster.kill(2)
        state = await stored(cluster)
        assert (state.leader, state.in_sync_replicas, state.leader_epoch) == (1, (1, 0), 1)

    run_cluster(scenario, 0, 1, 2)


def test_last_in_sync_replica_is_waited_for() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        await cluster.kill(2)
        await cluster.kill(1)
        assert await leader_and_in_sync(cluster) == (NO_LEADER, (1,))

        await cluster.add(2)
        assert await leader_and_in_sync(cluster) == (NO_LEADER, (1,)), "2 may lack records"
        await cluster.add(1)
        assert await leader_and_in_sync(cluster) == (1, (1,))

    run_cluster(scenario, 0, 1, 2)


def test_unclean_leader_election_enable_elects_a_replica_out_of_sync() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2, unclean_leader_election_enable="true")
        await cluster.kill(2)
        await cluster.kill(1)
        await cluster.add(2)

        state = await stored(cluster)

        assert (state.leader, state.in_sync_replicas) == (2, (2,))
        assert state.is_recovering

    run_cluster(scenario, 0, 1, 2)


def test_reregistered_broker_counts_as_failed() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        member = cluster.members.pop(1)
        await member.store.close()
        await cluster.add(1)

        assert await leader_and_in_sync(cluster) == (2, (2,))

    run_cluster(scenario, 0, 1, 2)


def test_leadership_moves_before_a_broker_stops() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2, 0)
        channels = cluster.members[0].channels
        channels.take()

        remaining = await controller(cluster).commands.relieve(1, epoch_of(cluster, 1))

        assert remaining == []
        assert await leader_and_in_sync(cluster) == (2, (2, 0))
        stops = of_kind(channels.take(), StopReplicaRequest)
        assert [broker_id for broker_id, _ in stops] == [1]
        assert await controller(cluster).commands.relieve(1, epoch_of(cluster, 1)) == []

    run_cluster(scenario, 0, 1, 2)


def test_controlled_shutdown_keeps_partitions_without_another_isr_member() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        await cluster.kill(2)

        remaining = await controller(cluster).commands.relieve(1, epoch_of(cluster, 1))

        assert remaining == [AT]
        assert await leader_and_in_sync(cluster) == (1, (1,))

    run_cluster(scenario, 0, 1, 2)


def test_controlled_shutdown_with_a_stale_broker_epoch_is_refused() -> None:
    async def scenario(cluster: Cluster) -> None:
        with pytest.raises(ApiError) as refused:
            await controller(cluster).commands.relieve(1, epoch_of(cluster, 1) - 1)
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
        with pytest.raises(ApiError) as refused:
            await cluster.members[1].controller.commands.relieve(1, epoch_of(cluster, 1))
        assert refused.value.code == ErrorCode.NOT_CONTROLLER

    run_cluster(scenario, 0, 1)


def test_new_controller_elects_leaders_for_the_partitions_of_the_dead_one() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0, 1, 2)
        await cluster.kill(0)
        await turns(60)
        state = await stored(cluster)
        assert (state.leader, state.in_sync_replicas) == (1, (1, 2))
        assert state.controller_epoch == 2

    run_cluster(scenario, 0, 1, 2)


def test_follower_that_died_with_the_controller_leaves_the_in_sync_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "controller")

    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 0, 2)
        channels = cluster.members[1].channels
        channels.take()
        await cluster.kill(0)
        await turns(60)
        assert await leader_and_in_sync(cluster) == (1, (1, 2))
        told = of_kind(channels.take(), LeaderAndIsrRequest)
        assert {broker_id for broker_id, _ in told} == {1, 2}

    run_cluster(scenario, 0, 1, 2)
    assert "brokers [0] failed or left before this controller was elected" in caplog.messages


def test_new_controller_elects_when_the_last_in_sync_replica_comes_after_it() -> None:
    """All but the controller were dead, and were taken out of the in-sync set one by one."""

    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 2, 1)
        for broker_id in (1, 2, 0):
            await cluster.kill(broker_id)
        await cluster.add(3)
        assert await leader_and_in_sync(cluster) == (NO_LEADER, (2,))

        await cluster.add(2)

        assert await leader_and_in_sync(cluster) == (2, (2,))

    run_cluster(scenario, 0, 1, 2)


def test_new_controller_elects_when_both_in_sync_replicas_were_dead_with_the_old_one() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 2, 1)
        for broker_id in (0, 1, 2):
            member = cluster.members.pop(broker_id)
            await member.store.close()
        await cluster.add(3)
        _, (last,) = await leader_and_in_sync(cluster)

        await cluster.add(last)

        assert await leader_and_in_sync(cluster) == (last, (last,))

    run_cluster(scenario, 0, 1, 2)


def test_leader_that_reregistered_unseen_loses_its_leadership() -> None:
    """It may have lost unflushed records that the others have."""

    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2, 0)
        for broker_id in (0, 1):
            member = cluster.members.pop(broker_id)
            await member.store.close()
        await cluster.add(1)

        state = await stored(cluster)

        assert (state.leader, state.in_sync_replicas) == (2, (2,))

    run_cluster(scenario, 0, 1, 2)


def test_last_in_sync_replica_that_reregistered_unseen_leads_in_a_new_epoch() -> None:
    """Its followers may have records of the old epoch that it has lost."""

    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2, 0)
        await propose(cluster, (1,), broker_id=1)
        before = await stored(cluster)
        assert (before.leader, before.in_sync_replicas) == (1, (1,))
        for broker_id in (0, 1):
            member = cluster.members.pop(broker_id)
            await member.store.close()
        await cluster.add(1)

        state = await stored(cluster)

        assert (state.leader, state.in_sync_replicas) == (1, (1,))
        assert state.leader_epoch > before.leader_epoch

    run_cluster(scenario, 0, 1, 2)
