"""Transaction coordinators on a broker: logs, markers, time, and what goes wrong."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import pytest

from broker.metadata.metadata_cache import LEADER_DURING_DELETE
from coordinator.transactions.states import TransactionState
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.producers import ListTransactionsRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from protocol.records.batch import iterate_headers
from protocol.records.control import parse_marker
from tests.broker.coordinators.loading import until_loaded
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
    from pathlib import Path

    from broker.partitions.partition import Partition


S = TransactionState
SOON_MS = 150
"""Longer than a marker waits for another try."""


def markers(broker: TransactionBroker, topic: str) -> list[tuple[int, int, str, int]]:
    """Producer id, epoch, kind and coordinator epoch of each marker in partition 0."""
    partition = broker.replicas.require(topic, 0)
    found = []
    for batch in partition.log.read_batches(0, partition.log.log_end_offset):
        _, header = next(iterate_headers(batch))
        marker = parse_marker(batch) if header.is_control else None
        if marker is not None:
            found.append(
                (
                    header.producer_id,
                    header.producer_epoch,
                    marker.type.name,
                    marker.coordinator_epoch,
                )
            )
    return found


@pytest.mark.parametrize("commit", [True, False])
def test_every_partition_gets_its_marker(tmp_path: Path, commit: bool) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        assert await broker.add(producer, FLIGHTS, HOTELS) == {FLIGHTS: 0, HOTELS: 0}
        assert (await broker.end(producer, commit=commit)).error_code == ErrorCode.NONE
        await broker.turn()
        kind = "COMMIT" if commit else "ABORT"
        assert markers(broker, "flights") == [(*producer, kind, 0)]
        assert markers(broker, "hotels") == [(*producer, kind, 0)]
        complete = S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT
        assert broker.steps == [
            "Empty",
            "Ongoing",
            f"Prepare{kind.capitalize()}",
            "SomeMarked",
            "AllMarked",
            complete.shown,
        ]

    run_transaction_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [3, 5])
def test_a_reload_at_any_moment_comes_to_the_same_end(tmp_path: Path, version: int) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.restart_coordinators()
        await broker.add(producer, FLIGHTS, HOTELS)
        await broker.restart_coordinators()
        board = broker.switchboard
        board.is_holding = True
        await broker.end(producer, version=version)
        await broker.turn()
        assert len(board.held) == 1
        await broker.restart_coordinators()
        await wait_for(broker, S.COMPLETE_COMMIT)
        epoch = producer[1] + (version == 5)
        for topic in ("flights", "hotels"):
            assert markers(broker, topic) == [(producer[0], epoch, "COMMIT", 0)]
        await broker.restart_coordinators()
        await broker.turn()
        assert len(markers(broker, "flights")) == 1

    run_transaction_broker(tmp_path, scenario)


def test_a_partition_without_leader_gets_its_marker_when_it_has_one(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        broker.switchboard.is_leaderless = True
        await broker.end(producer)
        await broker.wait_ms(SOON_MS)
        assert (await broker.describe()).transaction_state == "PrepareCommit"
        broker.switchboard.is_leaderless = False
        await wait_for(broker, S.COMPLETE_COMMIT)

    run_transaction_broker(tmp_path, scenario)


def test_markers_without_an_answer_are_sent_again(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        board = broker.switchboard
        board.is_holding = True
        await broker.end(producer)
        await broker.turn()
        [(request, answered)] = board.held
        assert request.markers[0].transaction_version == 0
        answered(None)
        board.is_holding = False
        await wait_for(broker, S.COMPLETE_COMMIT)

    run_transaction_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("code", "is_completed"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, False),
        (ErrorCode.INVALID_PRODUCER_EPOCH, True),
        (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, True),
    ],
)
def test_an_error_for_a_marker_is_retried_or_completes_the_transaction(
    tmp_path: Path, code: ErrorCode, is_completed: bool
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        board = broker.switchboard
        board.is_holding = True
        await broker.end(producer)
        await broker.turn()
        [(request, answered)] = board.held
        answered(refusal(request, code))
        await broker.wait_ms(SOON_MS)
        expected = "CompleteCommit" if is_completed else "PrepareCommit"
        assert (await broker.describe()).transaction_state == expected
        is_tried_again = len(board.held) == 2
        assert is_tried_again == (
            not is_completed and code is not ErrorCode.TRANSACTION_COORDINATOR_FENCED
        )

    run_transaction_broker(tmp_path, scenario)


def test_a_topic_that_is_deleted_keeps_no_transaction_from_its_end(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS, HOTELS)
        await broker.topics.delete(["hotels"])
        await broker.metadata.wait_until(lambda: broker.metadata.topic("hotels") is None)
        await broker.end(producer)
        await wait_for(broker, S.COMPLETE_COMMIT)
        assert len(markers(broker, "flights")) == 1

    run_transaction_broker(tmp_path, scenario)


def forget(broker: TransactionBroker, topic: str) -> UpdateMetadataRequest:
    """Remove a topic from the metadata; return a function that restores it."""
    topics = copy(broker.metadata.topics[topic])
    topics.partitions = dict(topics.partitions)

    def told(leader: int) -> UpdateMetadataRequest:
        states = [copy(state) for state in topics.partitions.values()]
        for state in states:
            state.leader = leader
        return UpdateMetadataRequest(
            controller_id=BROKER_ID,
            controller_epoch=broker.metadata.controller_epoch,
            topic_states=[
                UpdateMetadataRequest.TopicState(
                    topic_name=topic, topic_id=topics.topic_id, partition_states=states
                )
            ],
            live_brokers=[UpdateMetadataRequest.LiveBroker(id=BROKER_ID, endpoints=[])],
        )

    back = told(BROKER_ID)
    broker.metadata.update(told(LEADER_DURING_DELETE))
    assert broker.metadata.topic(topic) is None
    return back


def test_a_topic_that_metadata_has_not_yet_is_not_taken_for_deleted(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS, HOTELS)
        told_later = forget(broker, "hotels")
        await broker.end(producer)
        await broker.wait_ms(SOON_MS)
        assert (await broker.describe()).transaction_state == "PrepareCommit"

        broker.metadata.update(told_later)

        await wait_for(broker, S.COMPLETE_COMMIT)
        assert len(markers(broker, "hotels")) == 1

    run_transaction_broker(tmp_path, scenario)


def test_a_coordinator_that_missed_an_epoch_writes_its_markers_again(tmp_path: Path) -> None:
    """Another broker may have led in between, and written markers that fence earlier ones."""

    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        broker.switchboard.is_holding = True
        await broker.end(producer)
        await broker.turn()
        ((request, answered),) = broker.switchboard.held
        broker.switchboard.is_holding = False
        shard = broker.transactions.shard_for(PRODUCER)

        lead_on(broker, shard.partition, epoch=1)
        assert broker.transactions.shard_for(PRODUCER) is shard
        lead_on(broker, shard.partition, epoch=7)
        await until_loaded(broker.transactions)
        answered(refusal(request, ErrorCode.TRANSACTION_COORDINATOR_FENCED))

        await wait_for(broker, S.COMPLETE_COMMIT)
        assert broker.transactions.shard_for(PRODUCER) is not shard
        assert markers(broker, "flights") == [(*producer, "COMMIT", 7)]

    run_transaction_broker(tmp_path, scenario)


def lead_on(broker: TransactionBroker, partition: Partition, epoch: int) -> None:
    state = LeaderAndIsrPartitionState(
        partition_index=partition.index,
        controller_epoch=partition.controller_epoch,
        leader=BROKER_ID,
        leader_epoch=epoch,
        isr=[BROKER_ID],
        partition_epoch=epoch,
        replicas=[BROKER_ID],
        is_new=False,
    )
    broker.replicas.lead_or_follow(partition.topic, partition.topic_id, state)


def test_nothing_is_sent_before_metadata_is_complete(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        await broker.restart_coordinators(is_metadata_complete=False)
        await broker.end(producer)
        await broker.turn()
        assert (await broker.describe()).transaction_state == "PrepareCommit"
        broker.sender.start()
        await wait_for(broker, S.COMPLETE_COMMIT)

    run_transaction_broker(tmp_path, scenario)


def test_an_overdue_transaction_is_aborted(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        await broker.add(producer, FLIGHTS)
        broker.clock.ms += 60_001
        await broker.transactions.abort_overdue()
        await wait_for(broker, S.COMPLETE_ABORT)
        assert markers(broker, "flights") == [(producer[0], producer[1] + 1, "ABORT", 0)]
        assert (await broker.end(producer)).error_code == ErrorCode.PRODUCER_FENCED
        assert (await broker.end(producer, version=1)).error_code == (
            ErrorCode.INVALID_PRODUCER_EPOCH
        )

    run_transaction_broker(tmp_path, scenario)


def test_an_unused_transactional_id_expires(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        broker.clock.ms += 5_001
        await broker.transactions.forget_expired()
        assert (await broker.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        await broker.restart_coordinators()
        assert broker.known() is None

    run_transaction_broker(tmp_path, scenario, transactional_id_expiration_ms=5_000)


def test_a_broker_that_is_not_coordinator_answers_not_coordinator(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer = await prepared(broker)
        broker.transactions.stop()
        assert (await broker.initialise()).error_code == ErrorCode.NOT_COORDINATOR
        assert (await broker.add(producer, FLIGHTS))[FLIGHTS] == ErrorCode.NOT_COORDINATOR
        assert (await broker.end(producer)).error_code == ErrorCode.NOT_COORDINATOR
        assert (await broker.describe()).error_code == ErrorCode.NOT_COORDINATOR
        wrong = await broker.initialise(transaction_timeout_ms=0)
        assert wrong.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT

    run_transaction_broker(tmp_path, scenario)


def test_requests_answer_coordinator_load_in_progress_while_transactions_load(
    tmp_path: Path,
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        broker.transactions.stop()
        broker.begin_anew()
        for partition in broker.replicas:
            broker.transactions.partition_changed(partition, partition.is_leader)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await broker.initialise()).error_code == loading
        request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        assert (await broker.ask(request, 0)).error_code == loading
        await until_loaded(broker.transactions)
        [listed] = (await broker.ask(request, 0)).transaction_states
        assert listed.transactional_id == PRODUCER

    run_transaction_broker(tmp_path, scenario)
