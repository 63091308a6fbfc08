"""Authorisation requested by handlers is decided, and logged where it has to be."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.requests.authorization import (
    is_allowed_on_any,
    is_allowed_on_topic,
    would_be_allowed_on_topic,
)
from broker.requests.context import Context
from config.broker import BrokerConfig
from config.checks import STANDARD_AUTHORIZER
from protocol.acl_types import AclOperation, ResourceType
from protocol.api_keys import ApiKey
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.services import parts_in_memory

if TYPE_CHECKING:
    import pytest

READ = AclOperation.READ


def context_of(principal: str, **keys: str) -> Context:
    config = BrokerConfig(super_users="User:root", **keys)
    services = parts_in_memory(config).services
    return Context(
        *(services, 12, "a-client", "PLAINTEXT", "/10.0.0.1", principal, NOW_MS),
        api_key=ApiKey.FETCH,
    )


def test_without_an_authorizer_all_is_allowed_and_nothing_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    context = context_of("User:alice")
    assert is_allowed_on_topic(context, READ, "orders")
    assert is_allowed_on_any(context, READ, ResourceType.TOPIC)
    assert "Principal" not in caplog.text


def test_denials_are_logged_except_for_silent_checks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    context = context_of("User:alice", authorizer_class_name=STANDARD_AUTHORIZER)
    assert not would_be_allowed_on_topic(context, READ, "orders")
    assert "Principal" not in caplog.text
    assert not is_allowed_on_topic(context, READ, "orders")
    assert not is_allowed_on_any(context, READ, ResourceType.TOPIC)
    told = [line for line in caplog.messages if "Principal" in line]
    assert [line.partition("on resource = ")[2] for line in told] == [
        "Topic:LITERAL:orders for request = Fetch",
        "Topic:UNKNOWN:NONE for request = Fetch",
    ]


def test_allowed_operations_are_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    context = context_of("User:root", authorizer_class_name=STANDARD_AUTHORIZER)
    assert is_allowed_on_topic(context, READ, "orders")
    assert "Principal = User:root is Allowed operation = READ" in caplog.text
