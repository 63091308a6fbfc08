"""ListTransactions: what the filter by pattern lets pass, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.producers import ListTransactionsRequest
from tests.broker.coordinators.transaction_broker import (
    TransactionBroker,
    prepared,
    run_transaction_broker,
)

if TYPE_CHECKING:
    from pathlib import Path


async def answer(broker: TransactionBroker, pattern: str) -> Any:
    request = ListTransactionsRequest(
        state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern
    )
    return await broker.ask(request, 2)


async def listed(broker: TransactionBroker, pattern: str) -> set[str]:
    told = await answer(broker, pattern)
    assert told.error_code == ErrorCode.NONE
    return {each.transactional_id for each in told.transaction_states}


def test_pattern_is_matched_in_linear_time(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        await broker.initialise(transactional_id="a" * 40)

        assert await listed(broker, "(a+)+b") == set()
        assert await listed(broker, "(a+)+") == {"a" * 40}
        assert await listed(broker, "") == {"a" * 40, "payments"}

    run_transaction_broker(tmp_path, scenario)


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "a" * 33])
def test_pattern_that_does_not_compile_or_is_too_long_is_refused(
    pattern: str, tmp_path: Path
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        refused = await answer(broker, pattern)
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert not refused.transaction_states

    run_transaction_broker(tmp_path, scenario, transactional_id_pattern_max_length=32)
