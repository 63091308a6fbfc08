"""What ApiVersions says of features: what is promised, and what clients of v3 must not see."""

from __future__ import annotations

from typing import Any

import pytest

from broker.handlers.brokers.api_versions import api_versions
from broker.requests.context import Context
from config.broker import BrokerConfig
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.services import parts_in_memory


def ask(version: int, *, is_in_cluster: bool) -> Any:
    config = BrokerConfig(zookeeper_connect="elsewhere:2181" if is_in_cluster else None)
    services = parts_in_memory(config).services
    context = Context(services, version, None, "PLAINTEXT", "/127.0.0.1", "User:A", NOW_MS)
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response: Any = api_versions(context, request)
    return ApiVersionsResponse.decode(version, response.encode(version))


@pytest.mark.parametrize("version", [3, 4])
def test_a_broker_that_is_alone_promises_all_that_it_supports(version: int) -> None:
    answer = ask(version, is_in_cluster=False)
    assert answer.finalized_features_epoch >= 0
    finalised = {each.name: each.max_version_level for each in answer.finalized_features}
    assert finalised == {"group.version": 1, "transaction.version": 2}


def test_features_that_can_be_at_level_0_are_listed_from_version_4_on() -> None:
    assert ask(3, is_in_cluster=False).supported_features == []
    supported = ask(4, is_in_cluster=False).supported_features
    assert [(each.name, each.min_version, each.max_version) for each in supported] == [
        ("group.version", 0, 1),
        ("transaction.version", 0, 2),
    ]


def test_nothing_is_promised_where_brokers_of_apache_3_may_be() -> None:
    answer = ask(4, is_in_cluster=True)
    assert answer.finalized_features == []
    assert len(answer.supported_features) == 2
