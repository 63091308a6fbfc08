"""Control requests are accepted from the controller with the highest epoch seen, in any request."""

from __future__ import annotations

import asyncio
import errno
import shutil
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from broker.cluster.control_request_queue import ControlRequestQueue
from broker.partitions.replicas import Replicas
from config.topic import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.broker.handlers import one_broker
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.storage.exhaustion import ExhaustedFileSystem
from tests.storage.produced import TOPIC_ID, append, batch, open_directories
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

OLD, NEW = 7, 8


def leader_and_isr(epoch: int) -> Request:
    """Lead a partition that there was not before."""
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=epoch,
        leader=0,
        leader_epoch=epoch,
        isr=[0],
        partition_epoch=0,
        replicas=[0],
        is_new=True,
    )
    topic = LeaderAndIsrRequest.TopicState(
        topic_name="flights", topic_id=TOPIC_ID, partition_states=[state]
    )
    return LeaderAndIsrRequest(
        controller_id=0, controller_epoch=epoch, topic_states=[topic], live_leaders=[]
    )


def update_metadata(epoch: int) -> Request:
    """An UpdateMetadata without live brokers."""
    return UpdateMetadataRequest(
        controller_id=epoch, controller_epoch=epoch, topic_states=[], live_brokers=[]
    )


def stop_replica(epoch: int) -> Request:
    """Delete the partition."""
    kind = StopReplicaRequest.TopicState
    state = kind.PartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    topic = kind(topic_name="flights", partition_states=[state])
    return StopReplicaRequest(controller_id=0, controller_epoch=epoch, topic_states=[topic])


KINDS = [leader_and_isr, update_metadata, stop_replica]


@pytest.mark.parametrize("heard", KINDS)
@pytest.mark.parametrize("late", KINDS)
def test_requests_of_a_former_controller_are_refused_as_stale(
    heard: Any, late: Any, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        async def tell(request: Request) -> int:
            answer: Any = await broker.channels.send(0, request)
            return int(answer.error_code)

        assert await tell(leader_and_isr(OLD)) == ErrorCode.NONE
        assert await tell(heard(NEW)) == ErrorCode.NONE
        before = broker.replicas.partition("flights", 0), broker.metadata.controller_id

        assert await tell(late(OLD)) == ErrorCode.STALE_CONTROLLER_EPOCH

        assert (broker.replicas.partition("flights", 0), broker.metadata.controller_id) == before

    run_broker(tmp_path, scenario)


def test_a_request_that_raises_fails_its_sender_and_the_next_is_applied(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broken: Any = leader_and_isr(OLD)
        broken.topic_states[0].partition_states = None
        with pytest.raises(TypeError):
            await broker.channels.send(0, broken)
        given_up = broker.channels.send(0, broken)
        given_up.cancel()
        answer: Any = await asyncio.wait_for(broker.channels.send(0, update_metadata(NEW)), 60)
        assert answer.error_code == ErrorCode.NONE

    run_broker(tmp_path, scenario)


def test_a_partition_recreated_after_deletion_starts_at_offset_0_after_a_crash(
    tmp_path: Path,
) -> None:
    """Checkpoints are written once a minute, and hold the log start of the deleted log."""

    async def scenario(broker: OneBroker) -> None:
        await broker.channels.send(0, leader_and_isr(OLD))
        deleted = broker.logs.get("flights", 0)
        assert deleted is not None
        append(deleted, batch(5))
        deleted.advance_high_watermark(5)
        deleted.advance_log_start_offset(4)
        await asyncio.to_thread(broker.logs.checkpoint_log_starts)
        await broker.channels.send(0, stop_replica(OLD))
        await broker.channels.send(0, leader_and_isr(OLD))
        log = broker.logs.get("flights", 0)
        assert log is not None
        append(log, batch(2))
        # Indexes are preallocated: ten megabytes each are not copied on the loop.
        await asyncio.to_thread(shutil.copytree, log.directory.path, tmp_path / "crashed")

    run_broker(tmp_path / "broker", scenario)

    again = open_directories(tmp_path / "crashed")
    again.load(lambda _: TopicConfig())
    log = again.get("flights", 0)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)
    again.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_leader_and_isr_waits_for_file_descriptors_without_failing_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    filesystem = ExhaustedFileSystem(number)
    monkeypatch.setattr(one_broker, "LocalFileSystem", lambda: filesystem)

    async def scenario(broker: OneBroker) -> None:
        filesystem.run_out(0, failures=3)

        answer: Any = await broker.channels.send(0, leader_and_isr(NEW))

        assert answer.error_code == ErrorCode.NONE
        ((error,),) = [topic.partition_errors for topic in answer.topics]
        assert error.error_code == ErrorCode.NONE
        assert filesystem.failures == 0
        partition = broker.replicas.partition("flights", 0)
        assert partition is not None
        assert partition.is_leader

    run_broker(tmp_path, scenario)


def test_an_error_in_one_partition_of_leader_and_isr_leaves_the_others_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_or_follow = Replicas.lead_or_follow

    def fail_at_first(replicas: Replicas, topic: str, *args: Any) -> ErrorCode:
        if topic == "odd":
            raise ValueError(topic)
        return lead_or_follow(replicas, topic, *args)

    monkeypatch.setattr(Replicas, "lead_or_follow", fail_at_first)

    async def scenario(broker: OneBroker) -> None:
        request: Any = leader_and_isr(NEW)
        odd = LeaderAndIsrRequest.TopicState(
            topic_name="odd",
            topic_id=UUID(int=77),
            partition_states=request.topic_states[0].partition_states,
        )
        request.topic_states.insert(0, odd)

        answer: Any = await broker.channels.send(0, request)

        codes = [topic.partition_errors[0].error_code for topic in answer.topics]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]

    run_broker(tmp_path, scenario)


def test_a_cancelled_control_request_is_answered_and_the_next_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled(replicas: Replicas, topic: str, *args: Any) -> ErrorCode:
        raise asyncio.CancelledError

    monkeypatch.setattr(Replicas, "lead_or_follow", cancelled)

    async def scenario(broker: OneBroker) -> None:
        queue = ControlRequestQueue()
        supervised = supervision()
        supervised.keep("control requests", lambda: queue.run(broker.parts.applied))

        answer = queue.send(0, leader_and_isr(OLD))
        next_answer: Any = queue.send(0, update_metadata(NEW))
        await asyncio.wait_for(queue.wait_until_applied(), 60)

        assert answer.cancelled()
        assert next_answer.result().error_code == ErrorCode.NONE
        assert supervised.failures == {"control requests": 1}
        await end(supervised)

    run_broker(tmp_path, scenario)
