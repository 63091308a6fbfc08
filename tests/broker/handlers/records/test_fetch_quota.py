"""Fetches of consumers that exceed a quota: they get nothing, and lose nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.quotas.quota_keys import QuotaKey
from protocol.errors import ErrorCode
from tests.broker.handlers.data_broker import (
    DataBroker,
    answers,
    fetch_request,
    fill,
    offsets,
    records,
    run_data_broker,
    wanted,
)
from tests.broker.metered_client import MeteredClient

if TYPE_CHECKING:
    from pathlib import Path

FETCH, REQUEST = QuotaKey.CONSUMER_BYTE_RATE, QuotaKey.REQUEST_PERCENTAGE
VERSION = 12
BATCH_BYTES = len(records(3))
SECONDS = 10
"""Over which the first of all bytes count."""


@pytest.mark.parametrize("version", [4, 12])
def test_answer_counts_with_all_its_bytes(version: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        request = fetch_request(wanted())
        size = 4 + len((await client.ask(request, version)).encode(version))
        assert size > 3 * BATCH_BYTES

        await client.limit(FETCH, size / SECONDS)
        assert client.take_rests() == []
        allowed = await client.ask(request, version)
        throttled = await client.ask(request, version)

        assert offsets(answers(allowed)[0]) == list(range(9))
        assert answers(throttled) == []
        assert throttled.throttle_time_ms == SECONDS * 1000, "it would be twice the rate"
        assert client.take_rests() == [throttled.throttle_time_ms]

    run_data_broker(tmp_path, scenario)


def test_answer_that_is_not_given_does_not_count(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        await client.limit(FETCH, 2 * BATCH_BYTES / SECONDS)
        request = fetch_request(wanted(max_bytes=1))
        first = await client.ask(request, VERSION)
        assert len(offsets(answers(first)[0])) == 3

        throttles = [(await client.ask(request, VERSION)).throttle_time_ms for _ in range(3)]

        assert throttles[0] > 0
        assert throttles == [throttles[0]] * 3

    run_data_broker(tmp_path, scenario)


def test_consumer_reads_no_more_at_once_than_it_may(tmp_path: Path) -> None:
    """Else a consumer far behind would be throttled for as long as it is behind, each time."""

    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        nothing = await client.ask(fetch_request(wanted(offset=9)), VERSION)
        around = 4 + len(nothing.encode(VERSION))
        limit = BATCH_BYTES / SECONDS
        await client.limit(FETCH, limit)

        response = await client.ask(fetch_request(wanted(), min_bytes=1 << 30), VERSION)

        rate = (BATCH_BYTES + around) / SECONDS
        assert response.throttle_time_ms == round((rate - limit) / limit * SECONDS * 1000)

    run_data_broker(tmp_path, scenario)


def test_session_goes_on_after_an_answer_that_was_not_given(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        opened = await client.ask(fetch_request(wanted(), session_epoch=0), VERSION)
        assert opened.session_id > 0
        await client.limit(FETCH, 1)

        def again(epoch: int) -> object:
            return fetch_request(session_id=opened.session_id, session_epoch=epoch)

        throttled = await client.ask(again(1), VERSION)  # type: ignore[arg-type]
        assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
        assert throttled.throttle_time_ms > 0
        await client.limit(FETCH, None)

        response = await client.ask(again(2), VERSION)  # type: ignore[arg-type]
        assert response.error_code == ErrorCode.NONE
        assert offsets(answers(response)[0]) == list(range(9))

    run_data_broker(tmp_path, scenario)


def test_session_is_not_opened_by_an_answer_that_is_not_given(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        await client.limit(FETCH, 1)

        response = await client.ask(fetch_request(wanted(), session_epoch=0), VERSION)

        assert response.throttle_time_ms > 0
        assert response.session_id == 0
        assert len(broker.services.fetch_sessions) == 0

    run_data_broker(tmp_path, scenario)


def test_consumer_above_its_request_quota_gets_an_empty_answer(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        await client.limit(REQUEST, 1e-9)

        response = await client.ask(fetch_request(wanted()), VERSION)

        assert (response.throttle_time_ms, response.responses) == (1000, [])
        assert client.take_rests() == [1000]

    run_data_broker(tmp_path, scenario)


def test_no_quota_holds_for_a_follower(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await fill(broker)
        await client.limit(FETCH, 1)
        await client.limit(REQUEST, 1e-9)

        response = await client.ask(fetch_request(wanted(), replica_id=1), VERSION)

        assert response.throttle_time_ms == 0
        assert client.take_rests() == []
        assert len(answers(response)) == 1

    run_data_broker(tmp_path, scenario)
