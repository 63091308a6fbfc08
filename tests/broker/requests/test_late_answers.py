"""Answers that come later: their errors, their encoding, and those of a broker that joins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import broker.requests.startup_gate
from broker.requests.api_table import ROUTES, Route
from broker.runtime.deferred import Deferred
from protocol.api_keys import ApiKey
from protocol.errors import LONGEST_MESSAGE, ApiError, ErrorCode
from protocol.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from tests.broker.connections import until
from tests.broker.one_connection import OneConnection, ask_for_groups, joined

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def client() -> OneConnection:
    return OneConnection()


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a function in the place of a handler; ListGroups' if no other is named."""

    def replace(function: Callable[..., Any], key: ApiKey = ApiKey.LIST_GROUPS) -> None:
        route = ROUTES[key]
        other = Route(route.request, route.versions, route.advertised, function)
        monkeypatch.setitem(ROUTES, key, other)

    return replace


def test_error_of_a_deferred_answer_is_answered_as_one_that_is_raised(
    handle: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    codes = []
    for error in (ZeroDivisionError("oops"), ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)):
        waiting: Deferred[Any] = Deferred()
        handle(lambda *_, waiting=waiting: waiting)
        answer = ask_for_groups(OneConnection())
        waiting.fail(error)
        codes.append(ListGroupsResponse.decode(2, joined(answer.value)).error_code)

    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_deferred_error_that_has_no_place_ends_the_connection(
    client: OneConnection, handle: Callable[..., None]
) -> None:
    waiting: Deferred[Any] = Deferred()
    handle(lambda *_: waiting, ApiKey.METADATA)
    answer = client.send(ApiKey.METADATA, 1, bytes(4))

    waiting.fail(ZeroDivisionError("oops"))

    assert answer.value is None
    assert len(client.connection.reasons) == 1


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_response_that_cannot_be_written_is_answered_with_an_error(
    client: OneConnection,
    handle: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    version: int,
    is_late: bool,
) -> None:
    """Version 3 is flexible: its lengths could say more than a client reads."""
    group = ListGroupsResponse.Group(group_id="g" * 32_768, protocol_type="consumer")
    response = ListGroupsResponse(error_code=0, groups=[group])
    waiting: Deferred[Any] = Deferred()
    handle(lambda *_: waiting if is_late else response)
    tags = b"\0" if version == 3 else b""

    answer = client.send(ApiKey.LIST_GROUPS, version, tags + ListGroupsRequest().encode(version))
    if is_late:
        waiting.complete(response)
        answer = answer.value

    refused = ListGroupsResponse.decode(version, joined(answer)[len(tags) :])
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "ListGroupsRequest" in caplog.text


@pytest.mark.parametrize("is_bug", [False, True])
def test_message_that_repeats_what_a_client_sent_is_cut(
    client: OneConnection, handle: Callable[..., None], is_bug: bool
) -> None:
    text = "é" * 200_000

    def fail(*_: object) -> None:
        raise ZeroDivisionError(text) if is_bug else ApiError(ErrorCode.INVALID_REQUEST, text)

    handle(fail, ApiKey.DESCRIBE_CLUSTER)
    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    answer = client.send(ApiKey.DESCRIBE_CLUSTER, 0, b"\0" + request.encode(0))

    message = DescribeClusterResponse.decode(0, joined(answer)[1:]).error_message
    assert message is not None
    assert len(message) == LONGEST_MESSAGE
    assert message.endswith("…")


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)  # noqa: TID251


@pytest.mark.parametrize("is_refused", [False, True])
def test_client_requests_wait_for_the_first_metadata(
    handle: Callable[..., None], is_refused: bool
) -> None:
    def groups(*_: object) -> ListGroupsResponse:
        if is_refused:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return ListGroupsResponse(error_code=0, groups=[])

    async def scenario() -> None:
        client = OneConnection(is_in_cluster=True)
        client.metadata.is_awaited = True
        handle(groups)
        waiting = client.send(ApiKey.LIST_GROUPS, 0)
        await turns()
        assert not waiting.is_complete

        client.metadata.settle()
        await turns()

        told = ListGroupsResponse.decode(0, joined(waiting.value))
        assert bool(told.error_code) == is_refused
        assert isinstance(client.send(ApiKey.LIST_GROUPS, 0), list)

    asyncio.run(scenario())


def test_brokers_and_inquiries_about_versions_do_not_wait() -> None:
    client = OneConnection(is_in_cluster=True)
    client.metadata.is_awaited = True

    assert isinstance(client.send(ApiKey.API_VERSIONS, 0), list)


def test_client_that_waits_for_too_long_is_hung_up_on(
    handle: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.requests.startup_gate, "LONGEST_SECONDS", 0.01)
    handle(lambda *_: ListGroupsResponse(error_code=0, groups=[]))

    async def scenario() -> None:
        client = OneConnection(is_in_cluster=True)
        client.metadata.is_awaited = True
        waiting = client.send(ApiKey.LIST_GROUPS, 0)
        await until(lambda: waiting.is_complete)
        assert waiting.value is None
        assert client.connection.reasons == ["this broker does not know the cluster yet"]

    asyncio.run(scenario())


def test_request_of_a_client_that_went_is_not_served_later(handle: Callable[..., None]) -> None:
    served: list[object] = []
    handle(lambda *_: served.append(1))

    async def scenario() -> None:
        client = OneConnection(is_in_cluster=True)
        client.metadata.is_awaited = True
        client.send(ApiKey.LIST_GROUPS, 0).abandon()
        client.metadata.settle()
        await turns()
        assert served == []

    asyncio.run(scenario())
