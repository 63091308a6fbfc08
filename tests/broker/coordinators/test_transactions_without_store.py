"""Transactional producers while the metadata store is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.znodes import PRODUCER_ID_BLOCK
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
def test_a_producer_that_needs_a_new_block_of_ids_is_sent_away_and_comes_again(
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


def test_a_producer_is_answered_though_nobody_can_tell_which_ids_are_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await broker.find_transaction_coordinator()
        await broker.store.set(PRODUCER_ID_BLOCK, b"not a block")
        assert await initialise(broker, PRODUCER) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert PRODUCER in caplog.text

    run_transaction_broker(tmp_path, scenario)
