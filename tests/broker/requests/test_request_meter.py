"""Quota usage of requests, and the throttle times of their clients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from broker.quotas.quota_keys import QuotaKey
from broker.requests.api_table import ROUTES
from broker.runtime.deferred import HangUp
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.client_quotas import DescribeClientQuotasRequest
from protocol.messages.groups import (
    DescribeGroupsRequest,
    ListGroupsRequest,
    ListGroupsResponse,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.transactions import WriteTxnMarkersRequest
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.broker.metered_client import MeteredClient

if TYPE_CHECKING:
    from pathlib import Path

PRODUCE, REQUEST = QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.REQUEST_PERCENTAGE
NEXT_TO_NOTHING = 1e-9
WINDOW_MS = 1000
ALL_WINDOWS_BUT_ONE_SECONDS = 10
BATCHES = {(TOPIC, 0): records(3)}
VERSION = 12
HEADER_BYTES = 10 + len("loader") + 1


def test_without_quotas_no_request_is_metered(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await broker.create_topic()

        response = await client.ask(produce_request(BATCHES), VERSION)  # type: ignore[arg-type]

        assert response.throttle_time_ms == 0
        assert client.take_rests() == []
        assert len(broker.services.quotas.produce) == 0

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_producer_above_its_rate_is_throttled(acks: int, tmp_path: Path) -> None:
    """With acks=0 there is no answer that could name the throttle time."""

    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await broker.create_topic()
        await client.limit(PRODUCE, 10)
        request = produce_request(BATCHES, acks=acks)  # type: ignore[arg-type]
        size = HEADER_BYTES + len(request.encode(VERSION))

        response = await client.ask(request, VERSION)

        rate = size / ALL_WINDOWS_BUT_ONE_SECONDS
        expected = round((rate - 10) / 10 * ALL_WINDOWS_BUT_ONE_SECONDS * 1000)
        assert expected > 0
        assert client.take_rests() == [expected]
        if acks:
            assert response.throttle_time_ms == expected
            (topic,) = response.responses
            assert topic.partition_responses[0].error_code == ErrorCode.NONE, "it was appended"
        else:
            assert response is None

    run_data_broker(tmp_path, scenario)


def test_producer_below_its_rate_goes_on(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await broker.create_topic()
        await client.limit(PRODUCE, 1_000_000)

        response = await client.ask(produce_request(BATCHES), VERSION)  # type: ignore[arg-type]

        assert response.throttle_time_ms == 0
        assert client.take_rests() == []

    run_data_broker(tmp_path, scenario)


def test_other_users_are_not_throttled(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client, other = MeteredClient(broker), MeteredClient(broker, user="bob")
        await broker.create_topic()
        await client.limit(PRODUCE, 10)
        await client.ask(produce_request(BATCHES), VERSION)  # type: ignore[arg-type]

        response = await other.ask(produce_request(BATCHES), VERSION)  # type: ignore[arg-type]

        assert response.throttle_time_ms == 0
        assert other.take_rests() == []

    run_data_broker(tmp_path, scenario)


def test_a_removed_quota_throttles_no_client(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await broker.create_topic()
        await client.limit(PRODUCE, 10)
        await client.limit(PRODUCE, None)

        await client.ask(produce_request(BATCHES), VERSION)  # type: ignore[arg-type]

        assert client.take_rests() == []

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (ListGroupsRequest(), 4),
        (DescribeGroupsRequest(groups=["g"]), 5),
        (MetadataRequest(topics=None), 12),
        (DescribeClientQuotasRequest(components=[], strict=False), 1),
        (ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3),
    ],
)
def test_any_request_counts_the_time_it_takes(
    request_: ListGroupsRequest, version: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await client.limit(REQUEST, NEXT_TO_NOTHING)

        response = await client.ask(request_, version)

        assert response.throttle_time_ms == WINDOW_MS, "never longer"
        assert client.take_rests() == [WINDOW_MS]

    run_data_broker(tmp_path, scenario)


def test_an_answer_without_a_throttle_time_field_throttles_too(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await client.limit(REQUEST, NEXT_TO_NOTHING)

        response = await client.ask(MetadataRequest(topics=[]), 1)

        assert len(response.brokers) == 1
        assert client.take_rests() == [WINDOW_MS]

    run_data_broker(tmp_path, scenario)


def test_answer_that_is_kept_for_others_does_not_name_the_time(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client, other = MeteredClient(broker), MeteredClient(broker, user="bob")
        await broker.create_topic(count=200)  # enough to keep the answer
        request = MetadataRequest(topics=None)
        await other.ask(request, VERSION)
        await client.limit(REQUEST, NEXT_TO_NOTHING)

        throttled = await client.ask(request, VERSION)
        response = await other.ask(request, VERSION)

        assert (throttled.throttle_time_ms, response.throttle_time_ms) == (WINDOW_MS, 0)
        assert throttled.topics == response.topics

    run_data_broker(tmp_path, scenario)


def test_requests_of_brokers_are_not_throttled(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await client.limit(REQUEST, NEXT_TO_NOTHING)

        await client.ask(WriteTxnMarkersRequest(markers=[]), 1)

        assert client.take_rests() == []

    run_data_broker(tmp_path, scenario)


def test_longer_of_two_rests_counts(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await broker.create_topic()
        await client.limit(REQUEST, NEXT_TO_NOTHING)
        await client.limit(PRODUCE, 1)

        response = await client.ask(produce_request(BATCHES), VERSION)  # type: ignore[arg-type]

        assert response.throttle_time_ms > WINDOW_MS
        assert client.take_rests() == [response.throttle_time_ms]
        quotas = broker.services.quotas
        assert (quotas.produce.throttle_count, quotas.request.throttle_count) == (1, 0)
        assert quotas.produce.throttle_ms == response.throttle_time_ms

    run_data_broker(tmp_path, scenario)


def test_an_error_answer_throttles_and_a_closed_connection_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await client.limit(REQUEST, NEXT_TO_NOTHING)

        def fail(*_: object) -> None:
            raise ValueError("a defect of the handler")

        replace_handler(monkeypatch, fail)
        response = await client.ask(ListGroupsRequest(), 4)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert response.throttle_time_ms == WINDOW_MS
        assert client.take_rests() == [WINDOW_MS]

        def hang_up(*_: object) -> None:
            raise HangUp("go away")

        replace_handler(monkeypatch, hang_up)
        another = MeteredClient(broker)
        assert await another.ask(ListGroupsRequest(), 4) is None
        assert another.connection.reasons == ["go away"]
        assert another.take_rests() == []

    run_data_broker(tmp_path, scenario)


def test_an_answer_kept_by_its_handler_is_not_modified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: DataBroker) -> None:
        client = MeteredClient(broker)
        await client.limit(REQUEST, NEXT_TO_NOTHING)
        kept = ListGroupsResponse(error_code=0, groups=[])
        replace_handler(monkeypatch, lambda *_: kept)

        response = await client.ask(ListGroupsRequest(), 4)

        assert response.throttle_time_ms == WINDOW_MS
        assert kept.throttle_time_ms == 0

    run_data_broker(tmp_path, scenario)


def replace_handler(monkeypatch: pytest.MonkeyPatch, handler: object) -> None:
    key = ApiKey.LIST_GROUPS
    monkeypatch.setitem(ROUTES, key, replace(ROUTES[key], handler=handler))  # type: ignore[arg-type]
