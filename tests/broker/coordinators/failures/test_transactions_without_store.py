"""Transactional producers while the metadata store is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

import pytest

from controller.znodes import PRODUCER_ID_BLOCK
from coordinator.transactions.shard import TransactionShard
from protocol.errors import ErrorCode
from protocol.messages.producer_ids import InitProducerIdRequest
from tests.broker.coordinators.transaction_broker import PRODUCER, run_transaction_broker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.broker.coordinators.transaction_broker import TransactionBroker

NEVER_SECONDS = 10.0
"""An answer that needs no more than some turns of the loop does not come after this."""


async def initialise(broker: TransactionBroker, transactional_id: str | None) -> int:
    async with asyncio.timeout(NEVER_SECONDS):
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        code: int = (await broker.ask(request, 5)).error_code
        return code


@pytest.mark.parametrize("transactional_id", [PRODUCER, None])
def test_init_producer_id_without_id_block_answers_coordinator_load_in_progress(
    transactional_id: str | None, tmp_path: Path
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_transaction_coordinator()
        broker.store.is_away = True
        assert broker.producer_ids.is_empty
        answered = await initialise(broker, transactional_id)
        assert answered == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

        broker.store.come_back()
        assert await initialise(broker, transactional_id) == ErrorCode.NONE

    run_transaction_broker(tmp_path, scenario)


def test_init_producer_id_with_an_unreadable_id_block_answers_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_transaction_coordinator()
        await broker.store.set(PRODUCER_ID_BLOCK, b"not a block")
        assert await initialise(broker, PRODUCER) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert PRODUCER in caplog.text

    run_transaction_broker(tmp_path, scenario)


def test_init_producer_id_is_answered_when_the_allocation_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled() -> NoReturn:
        raise asyncio.CancelledError

    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_transaction_coordinator()
        with monkeypatch.context() as patch:
            patch.setattr(broker.producer_ids, "_allocate", cancelled)
            answered = await initialise(broker, PRODUCER)
            assert answered == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert broker.take_failures() == ["one-time work"]
        assert await initialise(broker, PRODUCER) == ErrorCode.NONE

    run_transaction_broker(tmp_path, scenario)


def test_a_producer_is_answered_though_its_coordinator_fails_after_the_ids_have_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def odd(*_: object) -> NoReturn:
        raise ValueError("odd")

    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_transaction_coordinator()
        assert broker.producer_ids.is_empty
        with monkeypatch.context() as patch:
            patch.setattr(TransactionShard, "handle_initialise", odd)
            assert await initialise(broker, PRODUCER) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert PRODUCER in caplog.text
        assert await initialise(broker, PRODUCER) == ErrorCode.NONE

    run_transaction_broker(tmp_path, scenario)


@pytest.mark.parametrize("verify_only", [True, False])
def test_verification_is_answered_with_an_error_when_the_shard_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify_only: bool
) -> None:
    def odd(*_: object) -> NoReturn:
        raise ValueError("odd")

    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_transaction_coordinator()
        monkeypatch.setattr(TransactionShard, "handle_verify", odd)
        monkeypatch.setattr(TransactionShard, "handle_add_partitions", odd)
        answers: list[object] = []
        broker.transactions.verify_or_add_partitions(
            PRODUCER, 1, 0, [("flights", 0)], verify_only=verify_only, callback=answers.append
        )
        assert answers == [{("flights", 0): ErrorCode.UNKNOWN_SERVER_ERROR}]

    run_transaction_broker(tmp_path, scenario)


def test_waiting_producers_share_one_allocation_of_producer_ids(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        broker.store.is_away = True
        for _ in range(100):
            assert broker.transactions._new_id() is None
        assert [task.get_name() for task in broker.tasks].count("producer ids") == 1

        await broker.settle("producer ids")
        broker.store.come_back()
        assert broker.transactions._new_id() is None
        await broker.settle("producer ids")
        assert broker.transactions._new_id() is not None

    run_transaction_broker(tmp_path, scenario)
