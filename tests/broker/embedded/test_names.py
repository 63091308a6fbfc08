"""Errors and requests are found by their names, however they are written."""

from __future__ import annotations

import pytest

from broker.embedded.names import error_named, request_named
from broker.testing import ErrorCode, InitProducerId, Produce
from protocol.messages.configs import DescribeConfigsRequest
from protocol.schema import Request


@pytest.mark.parametrize(
    "name",
    [
        *("NOT_LEADER_OR_FOLLOWER", "not_leader_or_follower", "not-leader-or-follower"),
        *("NotLeaderOrFollower", "NotLeaderOrFollowerException", "NotLeaderOrFollowerError"),
    ],
)
def test_an_error_is_found_in_every_spelling(name: str) -> None:
    assert error_named(name) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_error_is_found_by_the_name_that_clients_kept() -> None:
    assert error_named("NOT_LEADER_FOR_PARTITION") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error_named("GroupLoadInProgressError") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("error", ErrorCode)
def test_every_error_is_found_by_itself_its_name_and_its_number(error: ErrorCode) -> None:
    assert {error_named(error), error_named(error.name), error_named(int(error))} == {error}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("NOT_LEADR_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"),
        ("TOPIC_AUTHORISATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_a_misspelt_error_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"^error: there is no '{name}'; did you mean {nearest}"):
        error_named(name)


@pytest.mark.parametrize("name", ["", "x", "zzzzzzzz"])
def test_an_unknown_error_name_is_refused_without_a_suggestion(name: str) -> None:
    with pytest.raises(ValueError, match=f"^error: there is no '{name}'$"):
        error_named(name)


def test_values_that_are_no_error_code_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^error: there is none with the number 77777"):
        error_named(77777)
    for wrong in (None, True, 1.5, Produce):
        with pytest.raises(TypeError, match=r"^error is an ErrorCode"):
            error_named(wrong)


@pytest.mark.parametrize("name", ["Produce", "produce", "PRODUCE", "ProduceRequest"])
def test_a_request_is_found_in_every_spelling(name: str) -> None:
    assert request_named(name) is Produce


def test_requests_of_administrators_are_found_too() -> None:
    assert request_named("describe_configs") is DescribeConfigsRequest
    assert request_named("INIT_PRODUCER_ID") is InitProducerId
    assert request_named(None) is None
    assert request_named(Produce) is Produce


def test_a_misspelt_request_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"^request: there is no 'Prodce'; did you mean Produce"):
        request_named("Prodce")


def test_values_that_are_no_request_class_are_refused() -> None:
    for wrong in (Produce.RESPONSE, Request, 0, True):
        with pytest.raises(TypeError, match=r"^request is a class of broker.testing"):
            request_named(wrong)
