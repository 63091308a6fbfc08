"""A failure to write markers affects no other transaction, and is retried."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from coordinator.transactions.states import TransactionState
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.transactions import WriteTxnMarkersRequest
from tests.broker.coordinators.transaction_broker import (
    FLIGHTS,
    HOTELS,
    PRODUCER,
    TransactionBroker,
    prepared,
    refusal,
    run_transaction_broker,
    wait_for,
)
from tests.broker.handlers.one_broker import BROKER_ID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from broker.partitions.partition import Partition
    from protocol.messages.transactions import WriteTxnMarkersResponse

S = TransactionState
OTHER = BROKER_ID + 1


@contextmanager
def raising_once(owner: object, name: str) -> Iterator[list[object]]:
    """Make a method raise on its first call; yield the arguments of its calls."""
    method = getattr(owner, name)
    calls: list[object] = []

    def called(*args: object) -> object:
        calls.append(args)
        if len(calls) == 1:
            raise KeyError("planted")
        return method(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owner, name, called)
        yield calls


def test_a_marker_whose_sending_raises_is_sent_again(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        with raising_once(broker.switchboard, "write_markers") as calls:
            await broker.end(producer)
            await wait_for(broker, S.COMPLETE_COMMIT)
            assert len(calls) == 2
        assert broker.take_failures() == ["markers to broker 0"]

    run_transaction_broker(tmp_path, scenario)


def test_a_marker_that_fails_in_one_partition_is_written_to_the_others(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS, HOTELS)
        board = broker.switchboard
        board.is_holding = True
        await broker.end(producer)
        await broker.turn()
        [(request, _)] = board.held
        request.markers[0].topics = [
            WriteTxnMarkersRequest.Marker.Topic(name=topic, partition_indexes=[index])
            for topic, index in (FLIGHTS, HOTELS)
        ]
        answers: list[WriteTxnMarkersResponse | None] = []
        with raising_once(broker.replicas, "require") as calls:
            board.write_now(request, answers.append)
            assert len(calls) == 2
        failed = ErrorCode.UNKNOWN_SERVER_ERROR
        assert answers == [refusal(request, failed, but_for=HOTELS[0])]
        assert broker.take_failures() == ["transaction marker"]

    run_transaction_broker(tmp_path, scenario)


def test_a_transaction_whose_end_cannot_be_recorded_is_completed_later(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        shard = broker.transactions.shard_for(PRODUCER)
        with raising_once(shard.transactions, "handle_markers_written") as calls:
            await broker.end(producer)
            await wait_for(broker, S.COMPLETE_COMMIT)
            assert len(calls) == 2
        assert broker.take_failures() == ["completion of transactions"]

    run_transaction_broker(tmp_path, scenario)


def test_an_error_code_of_a_newer_broker_is_tried_again(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        board = broker.switchboard
        board.is_holding = True
        await broker.end(producer)
        await broker.turn()
        [(request, answered)] = board.held
        board.is_holding = False
        answered(refusal(request, 9_999))
        await wait_for(broker, S.COMPLETE_COMMIT)

    run_transaction_broker(tmp_path, scenario)


def test_the_leader_for_a_marker_is_looked_up_again_after_an_error(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS, HOTELS)
        with raising_once(broker.switchboard, "leader") as calls:
            await broker.end(producer)
            await wait_for(broker, S.COMPLETE_COMMIT)
            assert len(calls) == 3
        assert broker.take_failures() == ["leaders for transaction markers"]

    run_transaction_broker(tmp_path, scenario)


def test_a_transaction_whose_flush_failed_completes_once_its_record_is_committed(
    tmp_path: Path,
) -> None:
    """As for lack of a descriptor: the broker stays leader, and no other would complete it."""

    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        partition = broker.transactions.shard_for(PRODUCER).partition
        await follow_with(broker, partition, in_sync=[BROKER_ID, OTHER])
        ending = asyncio.ensure_future(broker.end(producer))  # noqa: TID251
        await broker.turn()

        partition._limits_changed(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
        assert (await ending).error_code == ErrorCode.NOT_COORDINATOR
        await follow_with(broker, partition, in_sync=[BROKER_ID])

        await wait_for(broker, S.COMPLETE_COMMIT)

    run_transaction_broker(tmp_path, scenario, transaction_state_log_min_isr=1)


async def follow_with(broker: TransactionBroker, partition: Partition, in_sync: list[int]) -> None:
    """Replicate a partition of the coordinators to another broker, or no longer."""
    state = LeaderAndIsrPartitionState(
        partition_index=partition.index,
        controller_epoch=partition.controller_epoch,
        leader=BROKER_ID,
        leader_epoch=partition.leader_epoch + 1,
        isr=in_sync,
        partition_epoch=partition.partition_epoch + 1,
        replicas=[BROKER_ID, OTHER],
        is_new=False,
    )
    broker.replicas.lead_or_follow(partition.topic, partition.topic_id, state)
