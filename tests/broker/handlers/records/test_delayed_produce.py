"""A produce that waits for its replicas, or for the disk with `flush.messages`, from within.

`test_produce` has what clients see of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.handlers.records.appends import Appends
from broker.handlers.records.produce import DelayedProduce
from broker.runtime.deferred import Deferred
from protocol.errors import ApiError, ErrorCode
from protocol.messages.produce import ProduceRequest
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.broker.partitions.test_durability import HeldDisk
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from broker.handlers.records.appends import Answer
    from broker.partitions.partition import Partition

VERSION = 12


@pytest.mark.parametrize("is_committed_before", [False, True])
def test_a_delayed_produce_that_fails_leaves_no_timer_or_waiter(
    is_committed_before: bool, tmp_path: Path
) -> None:
    """Neither the timer nor the waits for other partitions outlive the error."""

    async def scenario(broker: DataBroker) -> None:
        first = await broker.create_topic(count=2)
        second = broker.replicas.partition(TOPIC, 1)
        assert second is not None
        epoch = first.leader_epoch + 1
        for partition in (first, second):
            broker.lead(partition, epoch, isr=(0, 1))
        request = produce_request({(TOPIC, 0): records(), (TOPIC, 1): records()})
        received = ProduceRequest.decode(12, memoryview(bytearray(request.encode(12))))
        appends = Appends(broker.context(12), received)
        response = appends.append_all()
        appends.pending[0] = appends.pending[0]._replace(answer=cast("Answer", None))

        if is_committed_before:
            broker.lead(first, epoch, isr=(0,))
        delayed = DelayedProduce(appends, response)
        broker.lead(first, epoch, isr=(0,))

        with pytest.raises(AttributeError):
            _ = delayed.deferred.value
        assert cast("asyncio.TimerHandle", delayed._timer).cancelled()
        assert [wait for wait in delayed._waits if wait.callback is not None] == []
        assert delayed._waiting == {}

    run_data_broker(tmp_path, scenario)


async def flushed_topic(broker: DataBroker, count: int = 1) -> tuple[Partition, HeldDisk]:
    """Create a topic with a flush for each record; return it and its disk, which waits."""
    disk = HeldDisk()
    partition = await broker.create_topic(count=count, flush_messages="1")
    for one in broker.replicas:
        assert one.durability is not None
        one.durability._flushes = disk
    return partition, disk


def produce(broker: DataBroker, acks: int, index: int = 0, **header: Any) -> Any:
    request = produce_request({(TOPIC, index): records(2, **header)}, VERSION, acks)
    return broker.call(request, VERSION)


def answer_of(response: Deferred[Any]) -> Any:
    assert response.is_complete
    (answer,) = response.value.responses[0].partition_responses
    return answer


@pytest.mark.parametrize("acks", [-1, 1])
def test_produce_is_answered_after_the_flush(acks: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        _, disk = await flushed_topic(broker)

        first, second = produce(broker, acks), produce(broker, acks)
        disk.begin()
        assert isinstance(first, Deferred)
        assert not first.is_complete
        disk.end()

        assert (answer_of(first).error_code, answer_of(first).base_offset) == (0, 0)
        assert (answer_of(second).error_code, answer_of(second).base_offset) == (0, 2)
        assert first.is_ordered_only, "requests behind it are handled, to share a flush"

    run_data_broker(tmp_path, scenario)


def test_acks_0_is_flushed_without_an_answer(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition, disk = await flushed_topic(broker)

        assert produce(broker, acks=0) is None

        assert partition.log.high_watermark == 0
        disk.flush()
        assert partition.log.high_watermark == 2

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("acks", [-1, 1])
def test_an_error_of_the_disk_is_answered(acks: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        _, disk = await flushed_topic(broker)
        waiting = produce(broker, acks)
        disk.begin()

        disk.end(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))

        assert answer_of(waiting).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("acks", [-1, 1])
def test_loss_of_leadership_answers_not_leader_once(acks: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition, disk = await flushed_topic(broker)
        waiting = produce(broker, acks)
        disk.begin()

        broker.lead(partition, partition.leader_epoch + 1, leader=1, isr=(0, 1))
        disk.end()

        assert answer_of(waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_data_broker(tmp_path, scenario)


def test_deleting_a_topic_answers_its_waiting_produce_requests(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        _, disk = await flushed_topic(broker)
        waiting = produce(broker, 1)
        disk.begin()

        await broker.delete_topic()

        assert answer_of(waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        ((log, work),) = disk.works
        with pytest.raises(ApiError) as deleted:
            work()
        log.ended(deleted.value)

    run_data_broker(tmp_path, scenario)


def test_a_client_that_hung_up_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition, disk = await flushed_topic(broker)
        waiting, other = produce(broker, 1), produce(broker, 1)
        disk.begin()

        waiting.abandon()
        disk.end()

        assert not waiting.is_complete
        assert answer_of(other).error_code == 0
        assert partition.log.high_watermark == 4

    run_data_broker(tmp_path, scenario)


def test_a_request_for_two_partitions_waits_for_both(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        _, disk = await flushed_topic(broker, count=2)
        request = produce_request({(TOPIC, 0): records(), (TOPIC, 1): records()}, VERSION, 1)
        waiting = broker.call(request, VERSION)
        disk.begin()
        (first, first_work), (second, second_work) = disk.works
        disk.works.clear()

        with disk_in_place():
            first_work()
        first.ended(None)
        assert not waiting.is_complete
        with disk_in_place():
            second_work()
        second.ended(None)

        answers = [
            answer.error_code
            for topic in waiting.value.responses
            for answer in topic.partition_responses
        ]
        assert answers == [0, 0]

    run_data_broker(tmp_path, scenario)
