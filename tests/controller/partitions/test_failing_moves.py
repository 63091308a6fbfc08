"""A move that fails, or is of a topic that goes, keeps nothing else from being done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import controller.controller
from controller.context import TopicPartition
from controller.topics.topics import NewTopic
from controller.znodes import DELETE_TOPICS, decode_topic, state_path, topic_path
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from tests.controller.brokers.test_broker_changes import AT, create, of_kind
from tests.controller.harness import Cluster, run_cluster, turns
from tests.controller.partitions.test_reassignment import caught_up, commands, reassign, told
from tests.controller.test_malformed_nodes import elect_anew

if TYPE_CHECKING:
    import pytest

OTHER = TopicPartition("payments", 0)


async def is_moving(cluster: Cluster, at: TopicPartition) -> bool:
    path = topic_path(at.topic)
    return bool(decode_topic(at.topic, (await cluster.store.get(path)).data).adding_replicas)


async def begin_both(cluster: Cluster) -> None:
    """`orders` and `payments` are to move from broker 0 to broker 1."""
    await create(cluster, 0)
    await cluster.topics.create([NewTopic(OTHER.topic, assignment={0: (0,)})], cluster.racks)
    await turns()
    assert await commands(cluster).reassign({OTHER: (1,), AT: (1,)}) == {OTHER: None, AT: None}


def test_a_move_that_fails_keeps_no_other_from_its_end_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0)

    async def scenario(cluster: Cluster) -> None:
        await begin_both(cluster)
        path = topic_path(OTHER.topic)
        sound = (await cluster.store.get(path)).data
        await cluster.store.set(path, b"{not json")

        await caught_up(cluster, 0, 1, leader=0, at=OTHER)
        assert "payments-0" in caplog.text
        await caught_up(cluster, 0, 1, leader=0)
        assert not await is_moving(cluster, AT)

        await cluster.store.set(path, sound)
        while await is_moving(cluster, OTHER):
            await turns(1)

    run_cluster(scenario, 0, 1)


def test_a_move_of_a_topic_that_is_deleted_goes_no_further() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        await reassign(cluster, 1, 2)
        await cluster.kill(2)
        await cluster.topics.delete([AT.topic])
        await turns()
        channels = cluster.members[0].channels
        channels.take()

        await cluster.add(2)

        assert of_kind(channels.take(), LeaderAndIsrRequest) == []
        assert await cluster.store.children(DELETE_TOPICS) == []

    run_cluster(scenario, 0, 1, 2)


def test_an_unreadable_partition_state_of_a_move_does_not_stop_an_election() -> None:
    async def scenario(cluster: Cluster) -> None:
        await begin_both(cluster)
        await cluster.store.set(state_path(*OTHER), b"{not json")
        await elect_anew(cluster)

        (active,) = (one for one in cluster.members.values() if one.controller.is_active)
        (new, *_) = told(active.channels.take(), 1)
        assert new.adding_replicas == [1]

    run_cluster(scenario, 0, 1)


def test_a_move_of_a_nonexistent_partition_does_not_stop_an_election() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        path = topic_path(AT.topic)
        data = (await cluster.store.get(path)).data or b""
        unknown = data.replace(b'"adding_replicas":{}', b'"adding_replicas":{"7":[1]}')
        assert unknown != data
        await cluster.store.set(path, unknown)
        await elect_anew(cluster)

        assert cluster.members[0].controller.is_active

    run_cluster(scenario, 0)
