"""Requests of partition leaders to transaction coordinators, here and on other brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from tests.broker.coordinators.transaction_broker import (
    FLIGHTS,
    HOTELS,
    PRODUCER,
    TransactionBroker,
    prepared,
    refusal,
    run_transaction_broker,
)

if TYPE_CHECKING:
    from pathlib import Path


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
        answers = [
            AddPartitionsToTxnResponse(
                error_code=ErrorCode.NONE, results_by_transaction=[result_for(FLIGHTS, HOTELS)]
            ),
            AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            None,
        ]
        for answer in answers:
            broker.transactions.verify_or_add_partitions(
                PRODUCER,
                producer_id,
                epoch,
                [FLIGHTS, HOTELS],
                verify_only=verify_only,
                callback=told.append,
            )
            request, answered = board.asked.pop()
            [wanted] = request.transactions
            assert wanted.verify_only == verify_only
            assert (wanted.transactional_id, wanted.producer_id) == (PRODUCER, producer_id)
            answered(answer)
        assert told == [
            {FLIGHTS: ErrorCode.NONE, HOTELS: ErrorCode.TRANSACTION_ABORTABLE},
            dict.fromkeys([FLIGHTS, HOTELS], ErrorCode.INVALID_TXN_STATE),
            dict.fromkeys([FLIGHTS, HOTELS], ErrorCode.NETWORK_EXCEPTION),
        ]

    run_transaction_broker(tmp_path, scenario)


def test_another_broker_is_asked_about_many_producers_at_once(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        board = broker.switchboard
        board.other = 7
        for number in range(50):
            broker.transactions.verify_or_add_partitions(
                f"p{number}", number, 0, [FLIGHTS], verify_only=True, callback=lambda _: None
            )
        (_, answered) = board.asked[0]
        answered(None)

        assert [len(request.transactions) for request, _ in board.asked] == [1, 49]

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
