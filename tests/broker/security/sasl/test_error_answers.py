"""An error answer to any request can be sent, and says what it is about."""

from __future__ import annotations

from typing import Any

import pytest

from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from broker.security.sasl.error_answers import NoPlaceError, error_answer
from protocol.errors import ApiError, ErrorCode
from protocol.fields import Kind
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.groups import DescribeGroupsRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.schema import Request, Struct

assert all_handlers.MODULES

ERROR = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
WITHOUT_ERRORS = {"MetadataRequest"}
"""Its answer has them, and no request has what they are about in the same order."""
WITHOUT_PLACE = {("DescribeLogDirsRequest", 0)}
"""Requests whose answers have no field for an error at all."""

REQUESTS = [
    (route.request, version)
    for route in ROUTES.values()
    if not route.is_for_clusters
    for version in {route.versions.first, route.versions.last}
]


def filled(struct: type[Struct], version: int) -> Any:
    """Return a struct with one element of each kind."""
    values: dict[str, Any] = {}
    for field in struct.FIELDS:
        if version not in field.versions:
            continue
        if field.kind is Kind.ARRAY:
            assert field.element is not None
            inner = field.element.struct
            values[field.name] = [
                filled(inner, version)
                if inner is not None
                else ("name" if field.element.kind is Kind.STRING else 7)
            ]
        elif field.kind is Kind.STRING:
            values[field.name] = "name"
        elif field.kind in (Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64):
            values[field.name] = 7
        elif field.kind in (Kind.BYTES, Kind.RECORDS):
            values[field.name] = b""
    return struct(**values)


def codes(answer: Struct) -> list[int]:
    found: list[int] = []
    for field in answer.FIELDS:
        value = getattr(answer, field.name)
        if field.name in {"error_code", "partition_error_code"}:
            found.append(value)
        elif field.kind is Kind.ARRAY:
            found += [code for one in value or () if isinstance(one, Struct) for code in codes(one)]
    return found


@pytest.mark.parametrize(
    ("request_class", "version"), REQUESTS, ids=lambda one: getattr(one, "__name__", str(one))
)
def test_every_request_gets_an_answer_that_its_client_can_read(
    request_class: type[Request], version: int
) -> None:
    request = filled(request_class, version)
    for is_deep in (False, True):
        try:
            answer = error_answer(request, version, ERROR, is_deep=is_deep)
        except NoPlaceError:
            assert (request_class.__name__, version) in WITHOUT_PLACE
            return

        sent = answer.encode(version)
        read = request_class.RESPONSE.decode(version, sent)

        if request_class.__name__ not in WITHOUT_ERRORS:
            assert int(ERROR.code) in codes(read)


def test_partitions_of_a_produce_request_are_named() -> None:
    request = ProduceRequest(
        acks=-1,
        timeout_ms=0,
        topic_data=[
            ProduceRequest.TopicData(
                name=name,
                partition_data=[
                    ProduceRequest.TopicData.PartitionData(index=index, records=b"")
                    for index in (3, 5)
                ],
            )
            for name in ("orders", "invoices")
        ],
    )
    answer = error_answer(request, 9, ERROR)
    assert isinstance(answer, ProduceResponse)
    assert [
        (topic.name, one.index, one.error_code, one.base_offset)
        for topic in answer.responses
        for one in topic.partition_responses
    ] == [(name, index, 6, -1) for name in ("orders", "invoices") for index in (3, 5)]


def test_a_group_has_one_error_or_each_of_its_partitions() -> None:
    topic = OffsetFetchRequest.Group.Topic(name="orders", partition_indexes=[4])
    group = OffsetFetchRequest.Group(group_id="readers", topics=[topic])
    request = OffsetFetchRequest(groups=[group])

    shallow = error_answer(request, 8, ERROR)
    deep = error_answer(request, 8, ERROR, is_deep=True)

    assert isinstance(shallow, OffsetFetchResponse)
    assert isinstance(deep, OffsetFetchResponse)
    assert (shallow.groups[0].group_id, shallow.groups[0].error_code) == ("readers", 6)
    assert shallow.groups[0].topics == []
    assert deep.groups[0].error_code == 0
    (partition,) = deep.groups[0].topics[0].partitions
    assert (partition.partition_index, partition.error_code) == (4, 6)


def test_keys_are_named_that_are_asked_for_as_they_are() -> None:
    asked = FindCoordinatorRequest(coordinator_keys=["one", "two"])
    answer = error_answer(asked, 4, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert isinstance(answer, FindCoordinatorResponse)
    assert [one.key for one in answer.coordinators] == ["one", "two"]

    described = error_answer(DescribeGroupsRequest(groups=["one"]), 5, ERROR)
    assert described.groups[0].group_id == "one"  # type: ignore[attr-defined]
