"""CLIENT_METRICS resources, and the requests by which clients push what these ask for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from broker.handlers.brokers.config_resources import BROKER, CLIENT_METRICS
from broker.telemetry.telemetry import Telemetry
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.configs import ListConfigResourcesRequest
from protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from protocol.uuids import ZERO_UUID
from tests.broker.handlers.brokers.test_configs import (
    APPEND,
    DELETE,
    SET,
    code,
    description,
    increments,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.telemetry.test_telemetry import metrics
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path

Change = tuple[str, int, str | None]
NAME = "what/ever ü"


async def change(broker: OneBroker, *changes: Change, name: str = NAME, dry: bool = False) -> Any:
    return await broker.ask(increments(name, *changes, kind=CLIENT_METRICS, dry=dry), 1)


async def told(broker: OneBroker, name: str = NAME) -> dict[str, tuple[str, int]]:
    answer = await broker.ask(description(CLIENT_METRICS, name), 4)
    return {one.name: (one.value, one.config_source) for one in answer.results[0].configs}


def test_subscription_values_are_described_normalised(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        changes = ("metrics", SET, "a , b,a"), ("interval.ms", SET, " +0500")
        assert code(await change(broker, *changes)) == 0
        asked = description(CLIENT_METRICS, NAME)
        asked.include_synonyms = True
        [result] = (await broker.ask(asked, 4)).results
        assert [
            (one.name, one.value, [(each.value, each.source) for each in one.synonyms])
            for one in result.configs
        ] == [
            ("interval.ms", "500", [("500", 7)]),
            ("match", "", []),
            ("metrics", "a,b", [("a,b", 7)]),
        ]

    run_broker(tmp_path, scenario, broker_id=0)


async def listed(broker: OneBroker, version: int, *kinds: int) -> list[tuple[str, int]]:
    answer = await broker.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    return [(one.resource_name, one.resource_type) for one in answer.config_resources]


def with_telemetry(broker: OneBroker) -> Telemetry:
    """Set the telemetry as with a metrics port."""
    services = broker.services
    ids = iter(range(2, 10))
    telemetry = Telemetry(services.config, services.client_metrics, lambda: UUID(int=next(ids)))
    services.telemetry = telemetry
    return telemetry


def test_subscription_is_set_described_listed_stored_and_removed(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert await listed(broker, 0) == []
        assert code(await change(broker, ("metrics", SET, "a"), ("interval.ms", SET, "500"))) == 0
        assert code(await change(broker, ("metrics", APPEND, "b"))) == 0
        assert await told(broker) == {
            "interval.ms": ("500", 7),
            "match": ("", 5),
            "metrics": ("a,b", 7),
        }
        assert await listed(broker, 0) == [(NAME, 16)]
        assert await listed(broker, 1, CLIENT_METRICS) == [(NAME, 16)]
        assert await listed(broker, 1, BROKER) == [("0", 4)]
        assert (NAME, 16) in await listed(broker, 1)

        again = type(broker.services.client_metrics)(broker.store, broker.topic_configs.dynamic)
        await again.load()
        assert again.of_client({}) == (["a", "b"], 500)

        await change(broker, ("metrics", DELETE, None), ("interval.ms", DELETE, None))
        assert await listed(broker, 0) == []
        assert {source for _, source in (await told(broker)).values()} == {5}

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("name", "wanted", "error"),
    [
        ("", ("metrics", SET, "a"), ErrorCode.INVALID_REQUEST),
        (NAME, ("metric", SET, "a"), ErrorCode.INVALID_REQUEST),
        (NAME, ("interval.ms", SET, "5"), ErrorCode.INVALID_REQUEST),
        (NAME, ("match", SET, "client_id=("), ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_subscription_changes_are_refused(
    tmp_path: Path, name: str, wanted: Change, error: ErrorCode
) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert code(await change(broker, wanted, name=name)) == error
        assert code(await change(broker, ("metrics", SET, "a"), dry=True)) == 0
        assert await listed(broker, 0) == []
        empty = await broker.ask(description(CLIENT_METRICS, ""), 4)
        assert code(empty) == ErrorCode.INVALID_REQUEST

    run_broker(tmp_path, scenario)


def test_subscriptions_need_alter_configs_on_the_cluster(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        broker.services.authorizer = allowing()
        assert code(await change(broker, ("metrics", SET, "a"))) == refused
        assert code(await broker.ask(description(CLIENT_METRICS, NAME), 4)) == refused
        right = (ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALTER_CONFIGS)
        broker.services.authorizer = allowing(right)
        assert code(await change(broker, ("metrics", SET, "a"))) == 0

    run_broker(tmp_path, scenario)


def test_pushed_client_metrics_are_kept(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        telemetry = with_telemetry(broker)
        await change(broker, ("metrics", SET, "*"), ("interval.ms", SET, "100"))
        asked = GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
        answer = await broker.ask(asked, 0)
        assert answer.requested_metrics == ["*"]
        push = PushTelemetryRequest(
            client_instance_id=answer.client_instance_id,
            subscription_id=answer.subscription_id,
            terminating=False,
            compression_type=0,
            metrics=metrics(("gauge", "org.apache.kafka.x", 2.0)),
        )
        assert (await broker.ask(push, 0)).error_code == 0
        (sample,) = telemetry.series.samples()
        assert (sample.name, sample.value) == ("kafka_client_x", 2.0)
        assert sample.labels["client_id"] == "a-client"

        early = await broker.ask(push, 0)
        assert early.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        push.terminating, push.metrics = True, b"nonsense"
        assert (await broker.ask(push, 0)).error_code == ErrorCode.INVALID_RECORD
        assert telemetry.unreadable == 1
        asked.client_instance_id = answer.client_instance_id
        again = await broker.ask(asked, 0)
        assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED

    run_broker(tmp_path, scenario)


def test_telemetry_apis_are_listed_only_where_metrics_are_kept(tmp_path: Path) -> None:
    async def keys(broker: OneBroker) -> set[int]:
        asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        return {one.api_key for one in (await broker.ask(asked, 4)).api_keys}

    async def scenario(broker: OneBroker) -> None:
        both = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
        assert not both & await keys(broker)
        with_telemetry(broker)
        assert both <= await keys(broker)

    run_broker(tmp_path, scenario)


def test_subscriptions_are_not_kept_with_zookeeper(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert dataclasses.is_dataclass(broker.services)
        broker.services.is_in_cluster = True
        assert code(await change(broker, ("metrics", SET, "a"))) == ErrorCode.INVALID_REQUEST

    run_broker(tmp_path, scenario)
