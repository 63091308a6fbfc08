"""Acknowledgements in requests: validated as a whole before any of them is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from tests.broker.handlers.share_groups.share_broker import (
    ACCEPT,
    REJECT,
    RENEW,
    ShareBroker,
    acquired,
    run_share_broker,
)

if TYPE_CHECKING:
    from pathlib import Path

ACKNOWLEDGED = 2
OUT_OF_ORDER = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("acks", "error"),
    [
        ([(6, 8, ACCEPT), (0, 2, ACCEPT)], OUT_OF_ORDER),
        ([(0, 5, ACCEPT), (3, 8, REJECT)], OUT_OF_ORDER),
        ([(0, 2, ACCEPT), (0, 2, ACCEPT)], OUT_OF_ORDER),
        ([(0, 8, ACCEPT), (3, 5, REJECT)], OUT_OF_ORDER),
        # Apache Kafka's check lets a batch begin where the one before ends; the record refuses it.
        ([(0, 4, ACCEPT), (4, 8, ACCEPT)], ErrorCode.INVALID_RECORD_STATE),
    ],
    ids=["descending", "overlapping", "twice", "within", "one record twice"],
)
@pytest.mark.parametrize("fetches", [True, False])
def test_batches_that_overlap_or_descend_acknowledge_nothing(
    acks: list[tuple[int, ...]], error: ErrorCode, *, fetches: bool, tmp_path: Path
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched()

        if fetches:
            refused = await broker.fetched(*acks, share_session_epoch=1)
            assert refused.acknowledge_error_code == error
            assert acquired(refused) == []
        else:
            assert (await broker.acknowledge(1, *acks)).error_code == error

        assert broker.state.records == {}
        assert (await broker.acknowledge(2, (0, 8, ACCEPT))).error_code == ErrorCode.NONE
        assert broker.state.records == dict.fromkeys(range(9), (1, ACKNOWLEDGED))

    run_share_broker(tmp_path, scenario)


@pytest.mark.parametrize("batch", [(0, 2, RENEW), (0, 2, 5), (2, 0, ACCEPT), (0, 2, 1, 1), (0, 2)])
def test_acknowledgement_that_makes_no_sense_is_refused(
    batch: tuple[int, ...], tmp_path: Path
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        await broker.fetched()

        answer = await broker.acknowledge(1, batch)

        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert (await broker.acknowledge(2, (0, 2, ACCEPT))).error_code == ErrorCode.NONE

    run_share_broker(tmp_path, scenario)


def test_a_partition_listed_twice_answers_invalid_request(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill()
        await broker.fetched()
        request = broker.fetch_request((0, 2, ACCEPT), share_session_epoch=1)
        request.topics += broker.fetch_request((0, 2, REJECT)).topics

        response = await broker.ask(request, 2)

        (answer,) = response.responses[0].partitions
        assert answer.acknowledge_error_code == ErrorCode.INVALID_REQUEST
        assert broker.state.records == dict.fromkeys(range(3), (1, ACKNOWLEDGED))

    run_share_broker(tmp_path, scenario)
