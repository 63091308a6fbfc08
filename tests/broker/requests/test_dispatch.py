"""Dispatch of frames: versions, malformed requests, handlers that fail, requests without answer."""

from __future__ import annotations

import logging
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.brokers.api_versions import OF_TELEMETRY
from broker.requests.api_table import ROUTES, Route
from broker.requests.encoded_response import EncodedResponse
from broker.runtime.deferred import Deferred, HangUp
from protocol.api_keys import ApiKey
from protocol.errors import ApiError, ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.cluster import DescribeQuorumRequest
from protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.stop_replica import StopReplicaRequest
from tests.broker.one_connection import ClosableConnection, OneConnection, ask_for_groups, joined
from tests.support.wire import request_header

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


@pytest.mark.parametrize("version", [6, 99, 32767])
def test_a_newer_api_versions_request_gets_the_supported_range(
    client: OneConnection, version: int
) -> None:
    """KIP-511: the answer has version 0 and header 0, error 35 and the one key."""
    answer = joined(client.send(ApiKey.API_VERSIONS, version, b"\x00 whatever comes then"))

    decoded = ApiVersionsResponse.decode(0, answer)
    assert decoded.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in decoded.api_keys] == [
        (18, 0, 5)
    ]
    assert client.connection.reasons == []


@pytest.mark.parametrize("is_in_cluster", [False, True])
def test_api_versions_lists_what_is_served(is_in_cluster: bool) -> None:
    client = OneConnection(is_in_cluster=is_in_cluster)
    decoded = ApiVersionsResponse.decode(0, joined(client.send(ApiKey.API_VERSIONS, 0)))

    assert decoded.error_code == ErrorCode.NONE
    listed = {key.api_key: (key.min_version, key.max_version) for key in decoded.api_keys}
    left_out = "is_for_one" if is_in_cluster else "is_for_clusters"
    served = {key for key in ROUTES if not getattr(ROUTES[key], left_out)}
    assert listed.keys() == served - OF_TELEMETRY
    assert (ApiKey.LEADER_AND_ISR in listed) == is_in_cluster
    assert (ApiKey.DESCRIBE_QUORUM in listed) != is_in_cluster
    assert listed[ApiKey.PRODUCE] == (0, 13), "librdkafka looks for 0 (KAFKA-18659)"


def test_a_standalone_broker_refuses_controller_requests(client: OneConnection) -> None:
    request = StopReplicaRequest(controller_id=1, controller_epoch=9, topic_states=[])
    body = b"\0" + request.encode(4)

    assert client.send(ApiKey.STOP_REPLICA, 4, body) is None

    assert client.connection.reasons == ["StopReplicaRequest is for clusters; this broker is alone"]


def test_broker_in_a_cluster_has_no_quorum() -> None:
    client = OneConnection(is_in_cluster=True)
    body = b"\0" + DescribeQuorumRequest(topics=[]).encode(0)

    assert client.send(ApiKey.DESCRIBE_QUORUM, 0, body) is None

    assert client.connection.reasons == ["DescribeQuorumRequest is for brokers without ZooKeeper"]


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b"])
def test_malformed_software_name_is_refused(client: OneConnection, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")

    answer = joined(client.send(ApiKey.API_VERSIONS, 3, b"\x00" + request.encode(3)))

    assert ApiVersionsResponse.decode(3, answer).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("key", "version"),
    [(ApiKey.PRODUCE, 2), (ApiKey.PRODUCE, 14), (ApiKey.METADATA, 99), (ApiKey.METADATA, -1)],
)
def test_other_versions_end_the_connection(
    client: OneConnection, key: ApiKey, version: int
) -> None:
    assert client.send(key, version, bytes(50)) is None

    (reason,) = client.connection.reasons
    assert reason


@pytest.mark.parametrize("key", [-1, 500, 32767, ApiKey.LEADER_AND_ISR, ApiKey.CONTROLLED_SHUTDOWN])
def test_keys_that_are_not_served_end_the_connection(client: OneConnection, key: int) -> None:
    assert client.send(key, 0, bytes(50)) is None

    (reason,) = client.connection.reasons
    assert reason


def test_every_cut_of_a_request_ends_the_connection(client: OneConnection) -> None:
    whole = (
        request_header(ApiKey.LIST_GROUPS, 4)
        + b"\x00"
        + ListGroupsRequest(states_filter=["Stable"]).encode(4)
    )

    for length in range(len(whole)):
        assert client.send_frame(whole[:length]) is None

    assert len(client.connection.reasons) == len(whole)
    assert all(reason.startswith("malformed request") for reason in client.connection.reasons)


def test_error_that_a_handler_raises_is_the_error_of_the_response(
    client: OneConnection, handle: Callable[..., None]
) -> None:
    def refuse(*_: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "soon")

    handle(refuse)

    decoded = ListGroupsResponse.decode(2, joined(ask_for_groups(client)))

    assert decoded.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert client.connection.reasons == []


def test_bug_in_a_handler_is_an_unknown_server_error_and_logged(
    client: OneConnection, handle: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oops")

    handle(fail)

    decoded = ListGroupsResponse.decode(2, joined(ask_for_groups(client)))

    assert decoded.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert caplog.records[0].exc_info


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), ApiError(ErrorCode.INVALID_REQUEST)])
def test_error_that_the_response_has_no_place_for_ends_the_connection(
    client: OneConnection, handle: Callable[..., None], error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    handle(fail, ApiKey.METADATA)

    assert client.send(ApiKey.METADATA, 1, bytes(4)) is None

    (reason,) = client.connection.reasons
    assert reason.startswith("MetadataRequest")


def test_handler_may_hang_up(client: OneConnection, handle: Callable[..., None]) -> None:
    def hang_up(*_: object) -> None:
        raise HangUp("enough")

    handle(hang_up)

    assert ask_for_groups(client) is None
    assert client.connection.reasons == ["enough"]


def test_a_handler_that_returns_none_sends_nothing(
    client: OneConnection, handle: Callable[..., None]
) -> None:
    handle(lambda *_: None)

    assert ask_for_groups(client) is None
    assert client.connection.reasons == []


def test_deferred_answer_is_encoded_when_it_comes(
    client: OneConnection, handle: Callable[..., None]
) -> None:
    abandoned: list[bool] = []
    waiting: Deferred[Any] = Deferred(
        is_ordered_only=True, on_abandon=lambda: abandoned.append(True)
    )
    handle(lambda *_: waiting)

    answer = ask_for_groups(client)
    assert isinstance(answer, Deferred)
    assert answer.is_ordered_only
    assert not answer.is_complete
    answer.abandon()
    assert abandoned == [True]

    answer = None
    again: Deferred[Any] = Deferred()
    handle(lambda *_: again)
    answer = ask_for_groups(OneConnection())
    again.complete(ListGroupsResponse(error_code=ErrorCode.NONE, groups=[]))
    assert ListGroupsResponse.decode(2, joined(answer.value)).groups == []


def test_answer_whose_bytes_are_known_is_sent_as_it_is(
    client: OneConnection, handle: Callable[..., None]
) -> None:
    handle(lambda *_: EncodedResponse([b"bytes ", b"that are known"]))

    assert joined(ask_for_groups(client)) == b"bytes that are known"


def test_bytes_after_a_request_are_let_pass(client: OneConnection) -> None:
    """Librdkafka 2.16 sends four bytes for a null array in Metadata v13, where one belongs."""
    answer = joined(client.send(ApiKey.API_VERSIONS, 0, b"left over"))

    assert ApiVersionsResponse.decode(0, answer).error_code == ErrorCode.NONE


@pytest.mark.parametrize("body", [b"", b"\0\0\0\x05", b"\xff" * 9])
def test_malformed_request_does_not_keep_its_connection(body: bytes) -> None:
    client = OneConnection()
    client.send(ApiKey.LIST_GROUPS, 4, body)
    assert "malformed" in client.connection.reasons[0]
    gone = weakref.ref(client.connection)

    client.connection = ClosableConnection()

    assert gone() is None, "without the collector of garbage cycles"
