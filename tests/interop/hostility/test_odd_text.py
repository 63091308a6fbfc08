"""Names that are not UTF-8 are answered as by Apache Kafka, which `AGAINST=apache` shows."""

from __future__ import annotations

import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pytest

from protocol.errors import ErrorCode
from protocol.headers import response_header_bytes
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.group_membership import JoinGroupRequest, JoinGroupResponse
from protocol.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.producers import ListTransactionsRequest, ListTransactionsResponse
from tests.interop.conftest import against_apache
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from protocol.schema import Request, Response
    from tests.interop.conftest import NewName, NewTopicFunction
    from tests.support.brokers.broker_process import BrokerProcess

R = TypeVar("R", bound="Response")

pytestmark = pytest.mark.interop

CLIENT_ID = b"Z\xfcrich\n"
READ = "\ufffd"
SENT = b"\xed\xa0\x80"
"""Half a pair of surrogates, as long as what it is read as."""
NOT_YET = ("error_code=14", "error_code=15", "error_code=16")
"""A coordinator that is made, or loads."""
TIMEOUT_SECONDS, REST_SECONDS = 30, 0.2


def asked(port: int, request: Request, version: int, kind: type[R]) -> R:
    """The answer to a request, in which U+FFFD is sent as bytes that are not UTF-8."""
    key = type(request).API_KEY
    header = struct.pack(">hhih", key, version, 7, len(CLIENT_ID)) + CLIENT_ID
    tags = b"\0" if version in type(request).FLEXIBLE else b""
    body = request.encode(version).replace(READ.encode(), SENT)
    with RawConnection.open(port) as connection:
        answer = connection.ask(header + tags + body)
    return kind.decode(version, answer, response_header_bytes(key, version))


def settled(port: int, request: Request, version: int, kind: type[R]) -> R:
    """Ask as `asked` does, once there is a coordinator."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        answer = asked(port, request, version, kind)
        if not any(code in repr(answer) for code in NOT_YET):
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(REST_SECONDS)


def _committing(group: str, topic: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.Topic.Partition(
        partition_index=0, committed_offset=7, committed_metadata=f"by {READ}"
    )
    topics = [OffsetCommitRequest.Topic(name=topic, partitions=[partition])]
    return OffsetCommitRequest(group_id=group, topics=topics)


def _joining(group: str, protocol_type: str = f"type {READ}") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="",
        protocol_type=protocol_type,
        protocols=[JoinGroupRequest.Protocol(name=f"protocol {READ}", metadata=b"\xff")],
    )


@pytest.fixture
def group(broker: BrokerProcess, new_name: NewName) -> str:
    """The name of a group, which has a coordinator."""
    name = f"{new_name('group')}{READ}"
    settled(broker.port, FindCoordinatorRequest(key=name), 1, FindCoordinatorRequest.RESPONSE)
    return name


@pytest.mark.parametrize("version", [0, 3])
def test_api_versions_answers_a_client_id_that_is_not_utf_8(
    broker: BrokerProcess, version: int
) -> None:
    request = ApiVersionsRequest()
    if version:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = asked(broker.port, request, version, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.NONE
    assert len(answer.api_keys) > 40


@pytest.mark.parametrize("version", [4, 9])
def test_topic_whose_name_is_not_utf_8_is_an_invalid_topic(
    broker: BrokerProcess, version: int
) -> None:
    name = f"Z{READ}rich"
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=name)])
    answer = asked(broker.port, request, version, MetadataResponse)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        (name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    ]


def test_offsets_of_a_group_whose_id_is_not_utf_8_come_back(
    broker: BrokerProcess, group: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic()
    committed = settled(broker.port, _committing(group, topic), 7, OffsetCommitResponse)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE

    wanted = OffsetFetchRequest.Topic(name=topic, partition_indexes=[0])
    fetching = OffsetFetchRequest(group_id=group, topics=[wanted])
    found = asked(broker.port, fetching, 5, OffsetFetchResponse).topics[0].partitions[0]
    assert (found.committed_offset, found.metadata) == (7, f"by {READ}")


def test_member_of_a_group_is_described_with_the_text_that_was_read(
    broker: BrokerProcess, group: str
) -> None:
    joined = settled(broker.port, _joining(group), 3, JoinGroupResponse)
    described = asked(
        broker.port, DescribeGroupsRequest(groups=[group]), 5, DescribeGroupsResponse
    ).groups[0]

    client_id = CLIENT_ID.decode(errors="replace")
    assert joined.protocol_name == f"protocol {READ}"
    assert joined.member_id.startswith(f"{client_id}-")
    assert (described.group_id, described.protocol_type) == (group, f"type {READ}")
    assert [one.client_id for one in described.members] == [client_id]


GROWING = "x" * 20_000
"""Sent as bytes that are each read as U+FFFD: a name that no string on the wire can hold."""


LISTING = ListTransactionsRequest(state_filters=[], producer_id_filters=[])


@pytest.mark.skipif(against_apache(), reason="some of these requests it never answers")
def test_names_that_grow_past_the_longest_string_affect_no_other_client(
    broker: BrokerProcess, group: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic()
    requests: list[tuple[Request, int]] = [
        (DescribeGroupsRequest(groups=[GROWING]), 0),
        (DescribeGroupsRequest(groups=[GROWING]), 4),
        (DescribeGroupsRequest(groups=[GROWING]), 5),
        (MetadataRequest(topics=[MetadataRequest.Topic(name=GROWING)]), 4),
        (MetadataRequest(topics=[MetadataRequest.Topic(name=GROWING)]), 9),
        (_committing(GROWING, topic), 7),
        (_committing(group, GROWING), 7),
        (_joining(GROWING), 3),
        (_joining(group, GROWING), 3),
        (InitProducerIdRequest(transactional_id=GROWING, transaction_timeout_ms=1000), 2),
    ]
    for request, version in requests:
        body = request.encode(version).replace(GROWING.encode(), b"\xff" * len(GROWING))
        header = struct.pack(">hhih", type(request).API_KEY, version, 7, 0)
        tags = b"\0" if version in type(request).FLEXIBLE else b""
        with RawConnection.open(broker.port) as connection, suppress(ConnectionError):
            assert connection.ask(header + tags + body)  # or closed: the answer may have no bytes

    committed = settled(broker.port, _committing(group, topic), 7, OffsetCommitResponse)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
    groups = asked(broker.port, ListGroupsRequest(), 0, ListGroupsResponse)
    assert groups.error_code == ErrorCode.NONE
    listed = asked(broker.port, LISTING, 0, ListTransactionsResponse)
    assert listed.error_code == ErrorCode.NONE
    assert "Traceback" not in broker.output_path.read_text()
