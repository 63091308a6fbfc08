"""Partitions on their way to other replicas, and requested elections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controller.context import TopicPartition
from controller.partitions.leader_balance import ElectionType
from controller.znodes import decode_topic, topic_path
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from tests.controller.brokers.test_broker_changes import AT, create, leader_and_in_sync, stored
from tests.controller.harness import Cluster, run_cluster, turns
from tests.controller.partitions.test_in_sync_changes import only, propose

if TYPE_CHECKING:
    from controller.commands import ControllerCommands
    from controller.znodes import Replicas, TopicAssignment
    from protocol.schema import Request


def commands(cluster: Cluster, broker_id: int = 0) -> ControllerCommands:
    return cluster.members[broker_id].controller.commands


async def assigned(cluster: Cluster) -> TopicAssignment:
    node = await cluster.store.get(topic_path(AT.topic))
    return decode_topic(AT.topic, node.data)


async def reassign(cluster: Cluster, *target: int) -> ErrorCode | None:
    error = (await commands(cluster).reassign({AT: target or None}))[AT]
    return None if error is None else error.code


async def caught_up(cluster: Cluster, *in_sync: int, leader: int, at: TopicPartition = AT) -> None:
    """Report these replicas as in sync, as the leader."""
    context = cluster.members[0].controller.context
    assert context is not None
    known = context.leadership[at]
    answer = only(
        await propose(
            cluster,
            in_sync,
            broker_id=leader,
            leader_epoch=known.state.leader_epoch,
            partition_epoch=known.partition_epoch,
            topic=at.topic,
        )
    )
    assert answer.error_code == ErrorCode.NONE
    await turns()


def told(sent: list[tuple[int, Request]], broker_id: int) -> list[LeaderAndIsrPartitionState]:
    return [
        state
        for to, request in sent
        if to == broker_id and isinstance(request, LeaderAndIsrRequest)
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def deleted(sent: list[tuple[int, Request]]) -> set[int]:
    """Return the brokers that got a StopReplica with deletion."""
    return {
        to
        for to, request in sent
        if isinstance(request, StopReplicaRequest)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition
    }


def test_a_partition_moves_once_its_new_replicas_have_caught_up() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        channels = cluster.members[0].channels
        channels.take()

        assert await reassign(cluster, 1, 2) is None

        moving = await assigned(cluster)
        assert moving.partitions == {0: (1, 2, 0)}
        assert (moving.adding_replicas, moving.removing_replicas) == ({0: (1, 2)}, {0: (0,)})
        sent = channels.take()
        (new,) = told(sent, 1)
        assert (new.is_new, new.replicas, new.leader) == (True, [1, 2, 0], 0)
        assert (new.adding_replicas, new.removing_replicas) == ([1, 2], [0])
        assert (await stored(cluster)).leader_epoch == 1

        await caught_up(cluster, 0, 1, leader=0)
        assert (await assigned(cluster)).adding_replicas, "broker 2 is missing"
        await caught_up(cluster, 0, 1, 2, leader=0)

        moved = await assigned(cluster)
        assert (moved.partitions, moved.adding_replicas) == ({0: (1, 2)}, {})
        assert await leader_and_in_sync(cluster) == (1, (1, 2))
        sent = channels.take()
        assert deleted(sent) == {0}
        assert told(sent, 2)[-1].replicas == [1, 2]
        assert told(sent, 2)[-1].adding_replicas == []

    run_cluster(scenario, 0, 1, 2)


def test_a_move_can_be_called_off() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        await reassign(cluster, 1, 2)
        cluster.members[0].channels.take()

        assert await reassign(cluster) is None

        assert (await assigned(cluster)).partitions == {0: (0,)}
        assert await leader_and_in_sync(cluster) == (0, (0,))
        assert deleted(cluster.members[0].channels.take()) == {1, 2}
        assert await reassign(cluster) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    run_cluster(scenario, 0, 1, 2)


def test_a_move_can_be_redirected() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        await reassign(cluster, 1)
        cluster.members[0].channels.take()

        await reassign(cluster, 2)

        moving = await assigned(cluster)
        assert (moving.partitions, moving.adding_replicas) == ({0: (2, 0)}, {0: (2,)})
        assert deleted(cluster.members[0].channels.take()) == {1}

    run_cluster(scenario, 0, 1, 2)


def test_reordering_replicas_changes_the_preferred_leader_only() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0, 1)

        assert await reassign(cluster, 1, 0) is None

        assert (await assigned(cluster)).partitions == {0: (1, 0)}
        assert await leader_and_in_sync(cluster) == (0, (0, 1))

    run_cluster(scenario, 0, 1)


@pytest.mark.parametrize("target", [(1, 1), (1, 7), (-1,)])
def test_impossible_replicas_are_refused(target: Replicas) -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        assert await reassign(cluster, *target) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert (await assigned(cluster)).partitions == {0: (0,)}
        at = TopicPartition("ghost", 0)
        error = (await commands(cluster).reassign({at: (1,)}))[at]
        assert error is not None
        assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run_cluster(scenario, 0, 1)


def test_a_new_controller_goes_on_with_a_move() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1)
        await reassign(cluster, 2)
        await cluster.kill(0)
        await turns(60)

        context = cluster.members[1].controller.context
        assert context is not None
        assert context.reassigning[AT].adding == (2,)
        (new, *_) = told(cluster.members[1].channels.take(), 2)
        assert new.adding_replicas == [2]

    run_cluster(scenario, 0, 1, 2)


def test_preferred_leader_election_needs_the_leader_live_and_in_sync() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        assert await elect(cluster) is ErrorCode.ELECTION_NOT_NEEDED
        await cluster.kill(1)
        assert await elect(cluster) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        await cluster.add(1)
        assert await elect(cluster) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "not in sync"
        await caught_up(cluster, 2, 1, leader=2)

        assert await elect(cluster) is ErrorCode.NONE

        assert await leader_and_in_sync(cluster) == (1, (2, 1))

    run_cluster(scenario, 0, 1, 2)


def test_unclean_election_applies_only_to_leaderless_partitions() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        assert await elect(cluster, ElectionType.UNCLEAN) is ErrorCode.ELECTION_NOT_NEEDED
        await cluster.kill(2)
        await cluster.kill(1)
        unavailable = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert await elect(cluster, ElectionType.UNCLEAN) is unavailable
        await cluster.add(2)

        assert await elect(cluster, ElectionType.UNCLEAN) is ErrorCode.NONE

        assert await leader_and_in_sync(cluster) == (2, (2,))

    run_cluster(scenario, 0, 1, 2)


def test_balance_moves_leadership_only_when_too_much_of_it_is_missed() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        await cluster.kill(1)
        await cluster.add(1)
        await caught_up(cluster, 2, 1, leader=2)

        await commands(cluster).balance(100)
        assert await leader_and_in_sync(cluster) == (2, (2, 1))
        await commands(cluster).balance(10)
        assert await leader_and_in_sync(cluster) == (1, (2, 1))

    run_cluster(scenario, 0, 1, 2)


async def elect(cluster: Cluster, kind: ElectionType = ElectionType.PREFERRED) -> ErrorCode:
    results = await commands(cluster).elect_leaders(None, kind)
    return results[AT]
