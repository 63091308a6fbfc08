"""GROUP resources: configured for single groups, described, listed, and held by coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.metadata.group_configs import GroupConfigs, group_entity
from controller.brokers.dynamic_configs import DynamicConfigs
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.configs import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path

GROUP, BROKER = 32, 4
SET, DELETE = 0, 1
OF_GROUP, DEFAULT = 8, 5
HEARTBEAT = "consumer.heartbeat.interval.ms"
NAMES = ("plain", "with/slash and ü", ".", "..", "%2E", "~")


async def alter(
    broker: OneBroker,
    group: str,
    name: str,
    value: str | None,
    resource_type: int = GROUP,
    **said: Any,
) -> Any:
    kind = IncrementalAlterConfigsRequest.Resource
    operation = DELETE if value is None else SET
    config = kind.Config(name=name, config_operation=operation, value=value)
    resource = kind(resource_type=resource_type, resource_name=group, configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource], **said)
    return (await broker.ask(request, 1)).responses[0]


async def describe(broker: OneBroker, group: str, *names: str) -> Any:
    resource = DescribeConfigsRequest.Resource(
        resource_type=GROUP, resource_name=group, configuration_keys=list(names) or None
    )
    return (await broker.ask(DescribeConfigsRequest(resources=[resource]), 4)).results[0]


async def listed(broker: OneBroker) -> list[str]:
    answer = await broker.ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    assert {one.resource_type for one in answer.config_resources} <= {GROUP}
    return [one.resource_name for one in answer.config_resources]


@pytest.mark.parametrize("group", NAMES)
def test_a_value_is_set_described_listed_and_deleted(tmp_path: Path, group: str) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert not (await alter(broker, group, HEARTBEAT, "6000")).error_code

        [config] = (await describe(broker, group, HEARTBEAT)).configs
        assert (config.value, config.config_source) == ("6000", OF_GROUP)
        assert await listed(broker) == [group]
        assert broker.services.group_configs.value(group, HEARTBEAT, 1) == 6000
        assert broker.services.group_configs.value("other", HEARTBEAT, 1) == 1

        loaded = GroupConfigs(broker.store, DynamicConfigs(broker.store), lambda: broker.config)
        await loaded.load()
        assert dict(loaded.overrides(group)) == {HEARTBEAT: "6000"}

        assert not (await alter(broker, group, HEARTBEAT, None)).error_code
        [config] = (await describe(broker, group, HEARTBEAT)).configs
        assert (config.value, config.config_source) == ("5000", DEFAULT)
        assert await listed(broker) == []

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_the_brokers_assignment_interval_holds_at_once(tmp_path: Path, kind: str) -> None:
    async def scenario(broker: OneBroker) -> None:
        settings = getattr(broker.services.groups.settings, kind)
        assert settings.assignment_interval_of("g") == 1_000

        name = f"{kind}.assignment.interval.ms"
        assert not (await alter(broker, "", f"group.{name}", "7", BROKER)).error_code
        assert settings.assignment_interval_of("g") == 7

        assert not (await alter(broker, "g", name, "9")).error_code
        assert not (await alter(broker, "", f"group.{name}", "8", BROKER)).error_code
        assert settings.assignment_interval_of("g") == 9
        assert settings.assignment_interval_of("other") == 8

        assert not (await alter(broker, "", f"group.{name}", None, BROKER)).error_code
        assert settings.assignment_interval_of("other") == 1_000

    run_broker(tmp_path, scenario)


def test_names_in_paths_are_distinct() -> None:
    assert len({group_entity(name) for name in NAMES}) == len(NAMES)
    assert not {"/", ".", ".."} & {group_entity(name) for name in NAMES}


@pytest.mark.parametrize(
    ("group", "name", "value", "error"),
    [
        ("", HEARTBEAT, "6000", ErrorCode.INVALID_REQUEST),
        ("g", HEARTBEAT, "1", ErrorCode.INVALID_CONFIG),
        ("g", "retention.ms", "1", ErrorCode.INVALID_CONFIG),
    ],
)
def test_refused_values_are_not_stored(
    tmp_path: Path, group: str, name: str, value: str, error: ErrorCode
) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert (await alter(broker, group, name, value)).error_code == error
        assert await listed(broker) == []

    run_broker(tmp_path, scenario)


def test_a_dry_run_stores_nothing_and_a_nameless_group_has_no_configuration(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert not (await alter(broker, "g", HEARTBEAT, "6000", validate_only=True)).error_code
        assert await listed(broker) == []
        assert (await describe(broker, "")).error_code == ErrorCode.INVALID_REQUEST

    run_broker(tmp_path, scenario)


def test_groups_have_no_configuration_where_brokers_of_apache_3_may_join(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        refused = await alter(broker, "g", HEARTBEAT, "6000")
        assert refused.error_code == ErrorCode.INVALID_REQUEST

        broker.services.features.levels = {"group.version": 1}
        assert not (await alter(broker, "g", HEARTBEAT, "6000")).error_code

    run_broker(tmp_path, scenario, zookeeper_connect="elsewhere:2181")


def test_operations_on_the_group_are_asked_for(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.services.authorizer = allowing(
            (ResourceType.GROUP, "mine", AclOperation.ALTER_CONFIGS),
            (ResourceType.GROUP, "mine", AclOperation.DESCRIBE_CONFIGS),
        )
        assert not (await alter(broker, "mine", HEARTBEAT, "6000")).error_code
        assert not (await describe(broker, "mine")).error_code
        for answer in (
            await alter(broker, "theirs", HEARTBEAT, "6000"),
            await describe(broker, "theirs"),
        ):
            assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    run_broker(tmp_path, scenario)


def test_heartbeat_answers_carry_the_interval_of_the_group(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic("t")

        async def interval(group: str) -> int:
            request = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id="a",
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            )
            answer: int = (await broker.ask(request, 1)).heartbeat_interval_ms
            return answer

        assert not (await alter(broker, "slow", HEARTBEAT, "9000")).error_code
        assert (await interval("slow"), await interval("other")) == (9000, 5000)

    run_group_broker(tmp_path, scenario)
