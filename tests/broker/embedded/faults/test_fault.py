"""Faults that could never strike are refused where they are made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from broker.embedded.faults.fault import Fault, Mischief
from broker.testing import (
    ApiVersions,
    ErrorCode,
    Fetch,
    FindCoordinator,
    Metadata,
    OffsetCommit,
    Produce,
)
from protocol.messages.configs import DescribeConfigsRequest
from protocol.messages.group_membership import HeartbeatRequest
from protocol.messages.topics import CreateTopicsRequest

if TYPE_CHECKING:
    from protocol.schema import Request


@pytest.mark.parametrize(
    ("argument", "wrong", "error"),
    [
        ("seconds", -1, ValueError),
        ("seconds", math.nan, ValueError),
        ("seconds", math.inf, ValueError),
        ("seconds", "1", TypeError),
        ("times", 0, ValueError),
        ("times", 1.5, TypeError),
        ("topic", b"orders", TypeError),
        ("client_id", 7, TypeError),
    ],
)
def test_an_argument_that_would_never_strike_is_refused(
    argument: str, wrong: object, error: type[Exception]
) -> None:
    arguments: dict[str, Any] = {"request": Produce, argument: wrong}
    with pytest.raises(error, match=f"^{argument} "):
        Fault(Mischief.FAIL, **arguments)


def test_failing_without_an_error_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^error: NONE is no error"):
        Fault(Mischief.FAIL, Produce, ErrorCode.NONE)


@pytest.mark.parametrize(
    "request_class", [ApiVersions, FindCoordinator, HeartbeatRequest, DescribeConfigsRequest]
)
def test_a_fault_by_topic_needs_a_request_that_names_topics(request_class: type[Request]) -> None:
    with pytest.raises(ValueError, match=f"^topic: {request_class.__name__} names no topics"):
        Fault(Mischief.FAIL, request_class, ErrorCode.INVALID_RECORD, topic="orders")


def test_a_topic_of_a_request_that_names_some_is_taken() -> None:
    for request_class in (Produce, Fetch, Metadata, OffsetCommit, CreateTopicsRequest, None):
        Fault(Mischief.FAIL, request_class, ErrorCode.INVALID_RECORD, topic="orders")


def test_a_fault_without_filters_strikes_any_request() -> None:
    fault = Fault(Mischief.FAIL, None, ErrorCode.INVALID_RECORD)

    assert fault.concerns(Produce, "me", ())
