"""Answers of brokers count for the term that sent the request and the life it was sent to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controller.context import TopicPartition
from controller.topics.topics import NewTopic
from controller.znodes import CONTROLLER, DELETE_TOPICS, decode_state, state_path
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from tests.controller.harness import Cluster, run_cluster, turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def create(cluster: Cluster, name: str, *replicas: int) -> None:
    await cluster.topics.create([NewTopic(name, assignment={0: replicas})], cluster.racks)
    await turns()


async def win_again(cluster: Cluster) -> None:
    """Remove the controller's node; the only broker is elected again."""
    await cluster.store.delete(CONTROLLER)


async def read_anew(cluster: Cluster) -> None:
    """The connection to the store broke: the controller is the same, what is known of it is not."""
    cluster.members[0].controller.interrupted()


@pytest.mark.parametrize("begin_office", [win_again, read_anew])
def test_a_deletion_refused_in_an_earlier_term_blocks_no_deletion(
    begin_office: Callable[[Cluster], Awaitable[None]],
) -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 0)
        channels = cluster.members[0].channels
        channels.delayed = (StopReplicaRequest,)
        await cluster.topics.delete(["orders"])
        await turns()
        await begin_office(cluster)
        await turns()

        channels.delete_errors["orders"] = ErrorCode.UNKNOWN_SERVER_ERROR
        await channels.answer_oldest()
        channels.delete_errors.clear()
        await channels.answer_oldest()

        assert await cluster.store.children(DELETE_TOPICS) == []

    run_cluster(scenario, 0)


def test_a_late_storage_error_of_an_earlier_registration_is_ignored() -> None:
    async def scenario(cluster: Cluster) -> None:
        channels = cluster.members[0].channels
        channels.delayed = (LeaderAndIsrRequest,)
        await create(cluster, "orders", 1)
        channels.delayed = ()
        await cluster.kill(1)
        await cluster.add(1)

        channels.lost.add((1, "orders"))
        await channels.answer_oldest()

        path = state_path("orders", 0)
        assert decode_state(path, (await cluster.store.get(path)).data).leader == 1

    run_cluster(scenario, 0, 1)


def test_a_deletion_refused_by_an_earlier_registration_completes_with_the_new_one() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 1)
        channels = cluster.members[0].channels
        channels.delayed = (StopReplicaRequest,)
        await cluster.topics.delete(["orders"])
        await turns()
        await cluster.kill(1)
        await cluster.add(1)

        channels.delete_errors["orders"] = ErrorCode.STALE_BROKER_EPOCH
        await channels.answer_oldest()
        channels.delete_errors.clear()
        await channels.answer_oldest()

        assert await cluster.store.children(DELETE_TOPICS) == []

    run_cluster(scenario, 0, 1)


def test_a_replica_that_a_move_could_not_delete_blocks_no_later_deletion_of_the_topic() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, "orders", 0, 1)
        commands = cluster.members[0].controller.commands
        at = TopicPartition("orders", 0)
        channels = cluster.members[0].channels
        channels.delayed = (StopReplicaRequest,)
        assert await commands.reassign({at: (0,)}) == {at: None}
        assert await commands.reassign({at: (0, 1)}) == {at: None}
        await cluster.topics.delete(["orders"])
        await turns()

        channels.delete_errors["orders"] = ErrorCode.UNKNOWN_SERVER_ERROR
        moved = await channels.answer_oldest()
        assert isinstance(moved, StopReplicaRequest)
        assert moved.topic_states[0].partition_states[0].delete_partition
        channels.delete_errors.clear()
        for _ in range(2):
            await channels.answer_oldest()

        assert await cluster.store.children(DELETE_TOPICS) == []

    run_cluster(scenario, 0, 1)
