"""DeleteRecords among several brokers: answered once all live replicas begin later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

import broker.handlers.records.delete_records as handler
from broker.handlers.records.delayed_delete_records import DelayedDeleteRecords, Deletion
from broker.requests.context import Context
from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from tests.broker.replica_fetchers.nodes import TOPIC, Ensemble, run_ensemble
from tests.storage.produced import NOW_MS, TOPIC_ID
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.runtime.deferred import Deferred

ALL = (0, 1, 2)
LONG_MS = 60_000
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
Outcome = tuple[ErrorCode, int]
State = UpdateMetadataPartitionState


def tell(nodes: Ensemble, *alive: int) -> None:
    """Set the topic, and the live brokers, in the metadata of broker 0."""
    live = UpdateMetadataRequest.LiveBroker
    state = State(
        partition_index=0,
        controller_epoch=1,
        leader=0,
        leader_epoch=0,
        isr=list(ALL),
        zk_version=0,
        replicas=list(ALL),
    )
    request = UpdateMetadataRequest(
        controller_id=0,
        controller_epoch=1,
        live_brokers=[live(id=one, endpoints=[]) for one in alive],
        topic_states=[
            UpdateMetadataRequest.TopicState(
                topic_name=TOPIC, topic_id=TOPIC_ID, partition_states=[state]
            )
        ],
    )
    nodes[0].metadata.update(request)
    if nodes[0].replicas.note_brokers(request):
        for partition in nodes[0].replicas:
            partition.brokers_changed()


async def ten_records(nodes: Ensemble) -> None:
    """Replicate ten records to all brokers; broker 0 knows every log start."""
    tell(nodes, *ALL)
    nodes.lead(0, isr=ALL, epoch=0)
    nodes[0].append(10)
    await nodes.until_equal(10)
    await nodes.until(lambda: nodes[0].partition.low_watermark == 0)


def delete(
    nodes: Ensemble, *offsets: int, timeout_ms: int = LONG_MS
) -> Deferred[DeleteRecordsResponse]:
    """Ask broker 0 to delete what is before each of these offsets."""
    kind = DeleteRecordsRequest.Topic
    partitions = [kind.Partition(partition_index=0, offset=offset) for offset in offsets]
    request = DeleteRecordsRequest(
        topics=[kind(name=TOPIC, partitions=partitions)], timeout_ms=timeout_ms
    )
    context = Context(nodes[0].services, 2, None, "PLAINTEXT", "/127.0.0.1", "", NOW_MS)
    return cast("Deferred[DeleteRecordsResponse]", handler.delete_records(context, request))


async def outcomes(deferred: Deferred[DeleteRecordsResponse]) -> list[Outcome]:
    response = await arrival(deferred)
    return [
        (ErrorCode(one.error_code), one.low_watermark)
        for topic in response.topics
        for one in topic.partitions
    ]


def starts(nodes: Ensemble) -> list[int]:
    return [nodes[number].partition.log.log_start_offset for number in ALL]


def test_the_answer_comes_when_all_replicas_begin_there(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)

        assert await outcomes(delete(nodes, 4)) == [(ErrorCode.NONE, 4)]
        assert starts(nodes) == [4, 4, 4]
        assert await outcomes(delete(nodes, 3, -1, 6)) == [
            (ErrorCode.NONE, 4),
            (ErrorCode.NONE, 10),
            (ErrorCode.NONE, 10),
        ]
        assert starts(nodes) == [10, 10, 10]
        assert not nodes[0].partition._start_watchers

    run_ensemble(tmp_path, scenario)


@pytest.mark.parametrize("timeout_ms", [20, 0, -1])
def test_a_follower_that_does_not_follow_is_waited_for_until_the_time_is_up(
    timeout_ms: int, tmp_path: Path
) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()

        answer = await outcomes(delete(nodes, 4, timeout_ms=timeout_ms))

        assert answer == [(TIMED_OUT, 0)]
        assert nodes[0].partition.log.log_start_offset == 4
        assert not nodes[0].partition._start_watchers

    run_ensemble(tmp_path, scenario)


def test_a_broker_that_dies_is_waited_for_no_more(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()
        waiting = delete(nodes, 4)
        await nodes.until(lambda: nodes[1].partition.log.log_start_offset == 4)
        assert not waiting.is_complete

        dead = nodes.nodes.pop(2)
        try:
            tell(nodes, 0, 1)
            assert await outcomes(waiting) == [(ErrorCode.NONE, 4)]
            assert await outcomes(delete(nodes, 5)) == [(ErrorCode.NONE, 5)]
        finally:
            nodes.nodes[2] = dead

    run_ensemble(tmp_path, scenario)


def another_leads(nodes: Ensemble) -> None:
    nodes.lead(1, isr=ALL, epoch=1, told=[0])


def the_topic_is_deleted(nodes: Ensemble) -> None:
    state = StopReplicaRequest.TopicState.PartitionState(
        partition_index=0, leader_epoch=-2, delete_partition=True
    )
    assert nodes[0].replicas.stop(TOPIC, state) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("happens", "code"),
    [
        (another_leads, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (the_topic_is_deleted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_delete_records_under_way_fails_on_loss_of_leadership(
    happens: Callable[[Ensemble], None], code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()
        waiting = delete(nodes, 4)

        happens(nodes)

        assert await outcomes(waiting) == [(code, -1)]

    run_ensemble(tmp_path, scenario)


def test_a_client_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()
        waiting = delete(nodes, 4)
        assert nodes[0].partition._start_watchers

        waiting.abandon()

        assert not nodes[0].partition._start_watchers

    run_ensemble(tmp_path, scenario)


def test_a_start_that_is_not_on_the_disk_is_a_storage_error(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        partition = nodes[0].partition
        answer = DeleteRecordsResponse.Topic.Partition(
            partition_index=0, low_watermark=-1, error_code=0
        )
        response = DeleteRecordsResponse(
            topics=[DeleteRecordsResponse.Topic(name=TOPIC, partitions=[answer])]
        )
        for offset in (0, 4):
            delayed = DelayedDeleteRecords(
                nodes[0].services, response, [Deletion(partition, offset, answer)], LONG_MS
            )

            delayed.note_written(frozenset())

            assert await outcomes(delayed.deferred) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]

    run_ensemble(tmp_path, scenario)


def test_an_unforeseen_error_while_waiting_is_the_clients_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await ten_records(nodes)
        nodes[2].following.stop()
        waiting = delete(nodes, 4)
        partition = nodes[0].partition
        in_sync, machine = partition.machine.in_sync, partition.machine
        machine.in_sync = cast("Any", "no set at all")
        partition.check_starts()
        try:
            with pytest.raises(AttributeError):
                await arrival(waiting)
        finally:
            machine.in_sync = in_sync
        assert not partition._start_watchers

    run_ensemble(tmp_path, scenario)


def test_a_new_follower_begins_within_a_batch_where_its_leader_does(tmp_path: Path) -> None:
    """DeleteRecords may leave a log start offset within a batch."""

    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=[0], epoch=0, told=[0])
        nodes[0].append(10)
        nodes[0].append(5)
        nodes[0].partition.log.advance_log_start_offset(4)

        nodes.lead(0, isr=[0], epoch=1)

        await nodes.until_equal(15)
        assert [nodes[one].partition.log.log_start_offset for one in ALL] == [4, 4, 4]

    run_ensemble(tmp_path, scenario)
