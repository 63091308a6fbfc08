"""In-sync sets proposed by leaders, as stored by the controller (KIP-497)."""

from __future__ import annotations

from typing import Any

import pytest

from controller.topics.topics import NewTopic
from controller.znodes import decode_state, state_path
from protocol.errors import ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.harness import Cluster, run_cluster, turns

LEADER = 1
Partition = AlterPartitionRequest.Topic.Partition


async def create(cluster: Cluster) -> None:
    await cluster.topics.create([NewTopic("orders", assignment={0: (1, 2, 0)})], cluster.racks)
    await turns()
    cluster.members[0].channels.take()


async def propose(
    cluster: Cluster, in_sync: tuple[int, ...], *, broker_id: int = LEADER, **fields: Any
) -> AlterPartitionResponse:
    """Propose a set as the leader would."""
    controller = cluster.members[0].controller
    context = controller.context
    assert context is not None
    members = fields.pop("epochs", {})
    broker_epoch = fields.pop("broker_epoch", context.live_brokers[broker_id].epoch)
    topic_id = context.topic_ids[fields.pop("topic", "orders")]
    values = {"leader_epoch": 0, "partition_epoch": 0, **fields}
    partition = Partition(
        partition_index=0,
        new_isr_with_epochs=[
            Partition.NewIsrWithEpoch(broker_id=one, broker_epoch=members.get(one, -1))
            for one in in_sync
        ],
        **values,
    )
    topic = AlterPartitionRequest.Topic(topic_id=topic_id, partitions=[partition])
    return await controller.commands.alter_partitions(
        AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=[topic])
    )


def only(response: AlterPartitionResponse) -> AlterPartitionResponse.Topic.Partition:
    assert response.error_code == ErrorCode.NONE
    return response.topics[0].partitions[0]


def test_a_set_is_stored_and_published_and_only_the_partition_epoch_grows() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster)

        answer = only(await propose(cluster, (1, 0)))

        assert (answer.error_code, answer.isr) == (ErrorCode.NONE, [1, 0])
        assert (answer.leader_id, answer.leader_epoch, answer.partition_epoch) == (1, 0, 1)
        node = await cluster.store.get(state_path("orders", 0))
        assert node.version == 1
        assert decode_state("", node.data).in_sync_replicas == (1, 0)
        sent = cluster.members[0].channels.take()
        assert {type(request) for _, request in sent} == {UpdateMetadataRequest}

    run_cluster(scenario, 0, 1, 2)


def test_a_request_that_is_repeated_succeeds() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster)
        await propose(cluster, (1, 0))

        answer = only(await propose(cluster, (1, 0)))

        assert (answer.error_code, answer.partition_epoch) == (ErrorCode.NONE, 1)

    run_cluster(scenario, 0, 1, 2)


@pytest.mark.parametrize(
    ("in_sync", "fields", "code"),
    [
        ((1, 0), {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ((1, 0), {"partition_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ((1, 0), {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ((2, 0), {"broker_id": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ((1, 2), {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 7), {}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 3), {}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 2), {"epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 2), {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_set_that_does_not_fit_is_refused(
    in_sync: tuple[int, ...], fields: dict[str, Any], code: ErrorCode
) -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster)

        answer = only(await propose(cluster, in_sync, **fields))

        assert answer.error_code == code
        assert (await cluster.store.get(state_path("orders", 0))).version == 0

    run_cluster(scenario, 0, 1, 2, 3)


def test_alter_partition_with_a_stale_broker_epoch_is_refused() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster)

        response = await propose(cluster, (1, 0), broker_epoch=1)

        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH

    run_cluster(scenario, 0, 1, 2)


def test_a_broker_that_leaves_does_not_come_in() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster)
        controller = cluster.members[0].controller
        context = controller.context
        assert context is not None
        await controller.commands.relieve(2, context.live_brokers[2].epoch)

        answer = only(await propose(cluster, (1, 0, 2), leader_epoch=1, partition_epoch=1))

        assert answer.error_code == ErrorCode.INELIGIBLE_REPLICA

    run_cluster(scenario, 0, 1, 2)
