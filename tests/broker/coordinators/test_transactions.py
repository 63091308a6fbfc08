"""Transaction coordinators on a broker: logs, markers, time, and what goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from coordinator.transactions.states import TransactionState
from protocol.errors import ErrorCode
from protocol.messages.producers import ListTransactionsRequest
from protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    WriteTxnMarkersResponse,
)
from protocol.records.batch import iterate_headers
from protocol.records.control import parse_marker
from tests.broker.coordinators.transaction_broker import (
    PRODUCER,
    TransactionBroker,
    run_transaction_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.messages.transactions import WriteTxnMarkersRequest

S = TransactionState
Marker = WriteTxnMarkersResponse.Marker
FLIGHTS = ("flights", 0)
HOTELS = ("hotels", 0)
SOON_MS = 150
"""Longer than a marker waits for another try."""


async def prepared(broker: TransactionBroker) -> tuple[int, int]:
    """Two topics, a coordinator, and a producer."""
    await broker.find_coordinator()
    await broker.find_transaction_coordinator()
    await broker.create_topic("flights")
    await broker.create_topic("hotels")
    return await begun(broker)


async def begun(broker: TransactionBroker) -> tuple[int, int]:
    told = await broker.initialise()
    assert told.error_code == ErrorCode.NONE
    return told.producer_id, told.producer_epoch


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


async def wait_for(broker: TransactionBroker, state: TransactionState) -> None:
    for _ in range(100):
        known = broker.known()
        if known is not None and known.state is state:
            return
        await broker.wait_ms(20)
    pytest.fail(f"{broker.known()} does not become {state}")


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


def test_what_cannot_be_sent_is_sent_again(tmp_path: Path) -> None:
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
def test_what_is_made_of_a_leaders_refusal(
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


def refusal(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            Marker(
                producer_id=marker.producer_id,
                topics=[
                    Marker.Topic(
                        name=topic.name,
                        partitions=[
                            Marker.Topic.Partition(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


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


def test_an_id_that_is_not_used_is_forgotten(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        broker.clock.ms += 5_001
        await broker.transactions.forget_expired()
        assert (await broker.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        await broker.restart_coordinators()
        assert broker.known() is None

    run_transaction_broker(tmp_path, scenario, transactional_id_expiration_ms=5_000)


def test_partitions_are_verified_and_added_for_leaders(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer_id, epoch = await prepared(broker)
        answers: list[dict[tuple[str, int], ErrorCode]] = []

        def ask(*, verify_only: bool, epoch: int = epoch, name: str = PRODUCER) -> Any:
            broker.transactions.verify_or_add_partitions(
                name,
                producer_id,
                epoch,
                [FLIGHTS],
                verify_only=verify_only,
                callback=answers.append,
            )
            return answers.pop()[FLIGHTS]

        assert ask(verify_only=True) is ErrorCode.TRANSACTION_ABORTABLE
        assert ask(verify_only=False) is ErrorCode.NONE
        assert ask(verify_only=True) is ErrorCode.NONE
        assert ask(verify_only=True, epoch=9) is ErrorCode.PRODUCER_FENCED
        assert ask(verify_only=True, name="?") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        known = broker.known()
        assert known is not None
        assert known.client_version == 2
        broker.transactions.stop()
        assert ask(verify_only=True) is ErrorCode.NOT_COORDINATOR
        assert ask(verify_only=False) is ErrorCode.NOT_COORDINATOR

    run_transaction_broker(tmp_path, scenario)


@pytest.mark.parametrize("verify_only", [True, False])
def test_the_coordinator_on_another_broker_is_asked(tmp_path: Path, verify_only: bool) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer_id, epoch = await prepared(broker)
        board = broker.switchboard
        board.other = 7
        told: list[dict[tuple[str, int], ErrorCode]] = []
        for _ in range(3):
            broker.transactions.verify_or_add_partitions(
                PRODUCER,
                producer_id,
                epoch,
                [FLIGHTS, HOTELS],
                verify_only=verify_only,
                callback=told.append,
            )
        [wanted] = board.asked[0][0].transactions
        assert wanted.verify_only == verify_only
        assert (wanted.transactional_id, wanted.producer_id) == (PRODUCER, producer_id)
        answers = [
            AddPartitionsToTxnResponse(
                error_code=ErrorCode.NONE, results_by_transaction=[result_for(FLIGHTS, HOTELS)]
            ),
            AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            None,
        ]
        for (_, answered), answer in zip(board.asked, answers, strict=True):
            answered(answer)
        assert told == [
            {FLIGHTS: ErrorCode.NONE, HOTELS: ErrorCode.TRANSACTION_ABORTABLE},
            dict.fromkeys([FLIGHTS, HOTELS], ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            dict.fromkeys([FLIGHTS, HOTELS], ErrorCode.NETWORK_EXCEPTION),
        ]

    run_transaction_broker(tmp_path, scenario)


def result_for(fine: tuple[str, int], not_added: tuple[str, int]) -> Any:
    codes = {fine: ErrorCode.NONE, not_added: ErrorCode.TRANSACTION_ABORTABLE}
    return AddPartitionsToTxnResponse.ResultsByTransaction(
        transactional_id=PRODUCER,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                ],
            )
            for (topic, index), code in codes.items()
        ],
    )


def test_a_transaction_that_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        producer_id, epoch = await prepared(broker)
        await broker.add((producer_id, epoch), FLIGHTS)
        broker.switchboard.is_holding = True
        ended = await broker.end((producer_id, epoch), version=5)
        await broker.turn()
        told: list[dict[tuple[str, int], ErrorCode]] = []

        def add() -> None:
            broker.transactions.verify_or_add_partitions(
                PRODUCER,
                producer_id,
                ended.producer_epoch,
                [HOTELS],
                verify_only=False,
                callback=told.append,
            )

        add()
        assert told == []
        broker.clock.ms += 100
        await broker.wait_ms(50)
        assert told.pop() == {HOTELS: ErrorCode.CONCURRENT_TRANSACTIONS}
        add()
        [(request, answered)] = broker.switchboard.held
        answered(refusal(request, ErrorCode.NONE))
        await broker.wait_ms(50)
        assert told == [{HOTELS: ErrorCode.NONE}]

    run_transaction_broker(tmp_path, scenario)


def test_where_there_is_no_coordinator_everybody_is_sent_away(tmp_path: Path) -> None:
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


def test_while_transactions_are_loaded_clients_come_again(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        broker.transactions.stop()
        broker.transactions = broker.new_coordinators()
        for partition in broker.replicas:
            broker.transactions.partition_changed(partition, partition.is_leader)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await broker.initialise()).error_code == loading
        request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        assert (await broker.ask(request, 0)).error_code == loading
        await broker.transactions.wait_until_loaded()
        [listed] = (await broker.ask(request, 0)).transaction_states
        assert listed.transactional_id == PRODUCER

    run_transaction_broker(tmp_path, scenario)
