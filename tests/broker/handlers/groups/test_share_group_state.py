"""Share state over the wire: who may ask, and what is answered partition by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinators.internal_topics import SHARE_KEY
from broker.runtime.deferred import awaited
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.share_group_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareStateQuestion,
    WriteShareGroupStateRequest,
)
from protocol.messages.share_state_records import StoredBatch
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from protocol.schema import Request

KEYS = {"share_coordinator_state_topic_num_partitions": 2}
CLUSTER_ACTION = (ResourceType.CLUSTER, "kafka-cluster", AclOperation.CLUSTER_ACTION)


def initialise(topic_id: UUID, *partitions: int, group_id: str = "g") -> Request:
    kind = InitializeShareGroupStateRequest.Topic
    wanted = [kind.Partition(partition=each, state_epoch=1, start_offset=4) for each in partitions]
    return InitializeShareGroupStateRequest(
        group_id=group_id, topics=[kind(topic_id=topic_id, partitions=wanted)]
    )


def requests(topic_id: UUID) -> list[tuple[Request, int]]:
    """The other four, about partition 0."""
    write, delete = WriteShareGroupStateRequest.Topic, DeleteShareGroupStateRequest.Topic
    read = look = ShareStateQuestion
    batch = StoredBatch(first_offset=4, last_offset=6, delivery_state=2, delivery_count=1)
    written = write.Partition(
        partition=0,
        state_epoch=1,
        leader_epoch=0,
        start_offset=-1,
        delivery_complete_count=3,
        state_batches=[batch],
    )
    wanted = read.Partition(partition=0, leader_epoch=0)
    looked = look.Partition(partition=0, leader_epoch=0)
    gone = delete.Partition(partition=0)
    return [
        (
            WriteShareGroupStateRequest(
                group_id="g", topics=[write(topic_id=topic_id, partitions=[written])]
            ),
            1,
        ),
        (
            ReadShareGroupStateRequest(
                group_id="g", topics=[read(topic_id=topic_id, partitions=[wanted])]
            ),
            0,
        ),
        (
            ReadShareGroupStateSummaryRequest(
                group_id="g", topics=[look(topic_id=topic_id, partitions=[looked])]
            ),
            1,
        ),
        (
            DeleteShareGroupStateRequest(
                group_id="g", topics=[delete(topic_id=topic_id, partitions=[gone])]
            ),
            0,
        ),
    ]


async def ready(broker: GroupBroker) -> UUID:
    """The id of a topic; the coordinators are there."""
    await broker.create_topic("t")
    await awaited(broker.services.internal_topics.when_ready(SHARE_KEY))
    return broker.metadata.topic_id("t")


def test_each_partition_has_an_answer_of_its_own(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        topic_id = await ready(broker)
        [result] = (await broker.ask(initialise(topic_id, 0, 9, -1), 0)).results
        assert [(each.partition, each.error_code) for each in result.partitions] == [
            (0, ErrorCode.NONE),
            (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (-1, ErrorCode.INVALID_REQUEST),
        ]
        answers = [
            (await broker.ask(request, version)).results[0].partitions[0]
            for request, version in requests(topic_id)
        ]
        assert [each.error_code for each in answers] == [ErrorCode.NONE] * 4
        [_, state, summary, _] = answers
        assert (state.state_epoch, state.start_offset) == (1, 4)
        [batch] = state.state_batches
        assert (batch.first_offset, batch.last_offset) == (4, 6)
        assert (batch.delivery_state, batch.delivery_count) == (2, 1)
        assert (summary.start_offset, summary.delivery_complete_count) == (4, 3)

    run_group_broker(tmp_path, scenario, **KEYS)


def test_share_group_state_needs_cluster_action(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        topic_id = await ready(broker)
        broker.services.authorizer = allowing()
        for request, version in [(initialise(topic_id, 0), 0), *requests(topic_id)]:
            [told] = (await broker.ask(request, version)).results[0].partitions
            assert told.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        broker.services.authorizer = allowing(CLUSTER_ACTION)
        [told] = (await broker.ask(initialise(topic_id, 0), 0)).results[0].partitions
        assert told.error_code == ErrorCode.NONE

    run_group_broker(tmp_path, scenario, **KEYS)


def test_a_request_that_lacks_something_gets_no_results(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        topic_id = await ready(broker)
        nothing = InitializeShareGroupStateRequest(group_id="g", topics=[])
        for request in (nothing, initialise(topic_id), initialise(topic_id, 0, group_id="")):
            assert (await broker.ask(request, 0)).results == []

    run_group_broker(tmp_path, scenario, **KEYS)


def test_a_broker_that_is_not_share_coordinator_answers_not_coordinator(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("t")
        topic_id = broker.metadata.topic_id("t")
        [told] = (await broker.ask(initialise(topic_id, 0), 0)).results[0].partitions
        assert told.error_code == ErrorCode.NOT_COORDINATOR

    run_group_broker(tmp_path, scenario, **KEYS)
