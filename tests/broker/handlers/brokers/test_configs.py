"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.brokers.config_resources import BROKER, TOPIC
from protocol.errors import ErrorCode
from protocol.messages.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new
from tests.support.written_configs import write_config

if TYPE_CHECKING:
    from pathlib import Path

BROKER_LOGGER = 8
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]


def description(kind: int, name: str, *keys: str, **options: bool) -> DescribeConfigsRequest:
    resource = DescribeConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    return DescribeConfigsRequest(resources=[resource], **options)


def replacement(name: str, *, dry: bool = False, **values: str | None) -> AlterConfigsRequest:
    resource = AlterConfigsRequest.Resource
    configs = [
        resource.Config(name=key.replace("_", "."), value=value) for key, value in values.items()
    ]
    return AlterConfigsRequest(
        resources=[resource(resource_type=TOPIC, resource_name=name, configs=configs)],
        validate_only=dry,
    )


def increments(
    name: str, *changes: Change, kind: int = TOPIC, dry: bool = False
) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.Resource
    configs = [
        resource.Config(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    return IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configs=configs)],
        validate_only=dry,
    )


def code(response: Any) -> ErrorCode:
    parts = getattr(response, "responses", None) or response.results
    return ErrorCode(parts[0].error_code)


def overrides(broker: OneBroker) -> dict[str, str]:
    return dict(broker.topic_configs.overrides("orders"))


@pytest.mark.parametrize("version", range(5))
def test_topic_is_described_with_sources(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", retention_ms="5000")), 7)
        request = description(TOPIC, "orders", "retention.ms", "cleanup.policy", "no.such.key")
        request.include_synonyms = True
        request.include_documentation = True
        configs = {c.name: c for c in (await broker.ask(request, version)).results[0].configs}
        assert set(configs) == {"retention.ms", "cleanup.policy"}
        assert configs["retention.ms"].value == "5000"
        if version == 0:
            assert [configs[n].is_default for n in ("retention.ms", "cleanup.policy")] == [
                False,
                True,
            ]
        else:
            assert configs["retention.ms"].config_source == 1
            assert configs["cleanup.policy"].config_source == 5
            assert configs["retention.ms"].synonyms[0].name == "retention.ms"
        if version >= 3:
            assert configs["retention.ms"].config_type == 5
            assert configs["retention.ms"].documentation

    run_broker(tmp_path, scenario)


def test_broker_describes_its_own_configs_and_no_other_brokers(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        result = (await broker.ask(description(BROKER, "0"), 4)).results[0]
        values = {c.name: c for c in result.configs}
        assert values["log.segment.bytes"].value == "1073741824"
        assert values["log.dirs"].read_only
        assert code(await broker.ask(description(BROKER, ""), 4)) is ErrorCode.NONE
        for name in ("7", "x"):
            response = await broker.ask(description(BROKER, name), 4)
            assert code(response) is ErrorCode.INVALID_REQUEST
            assert name in response.results[0].error_message
        for kind, name, expected in [
            (TOPIC, "ghost", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
            (99, "x", ErrorCode.INVALID_REQUEST),
        ]:
            assert code(await broker.ask(description(kind, name), 4)) is expected

    run_broker(tmp_path, scenario, broker_id=0)


def test_alter_configs_replaces_everything_at_once_on_the_running_log(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", retention_ms="5000")), 7)
        partition = broker.replicas.partition("orders", 0)
        assert partition is not None
        assert code(await broker.ask(replacement("orders", segment_bytes="99999999"), 2)) is (
            ErrorCode.NONE
        )
        assert overrides(broker) == {"segment.bytes": "99999999"}
        assert partition.log.config.segment_bytes == 99_999_999
        assert partition.log.config.retention_ms == broker.topic_configs.defaults.retention_ms
        dry = replacement("orders", dry=True, retention_ms="1")
        assert code(await broker.ask(dry, 2)) is ErrorCode.NONE
        assert overrides(broker) == {"segment.bytes": "99999999"}
        for request, expected in [
            (replacement("orders", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
            (replacement("orders", nonsense="1"), ErrorCode.INVALID_CONFIG),
            (replacement("orders", retention_ms=None), ErrorCode.INVALID_REQUEST),
            (replacement("ghost"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]:
            response = await broker.ask(request, 2)
            assert code(response) is expected
            assert response.responses[0].error_message
        assert code(await broker.ask(replacement("orders"), 0)) is ErrorCode.NONE
        assert overrides(broker) == {}
        assert partition.log.config == broker.topic_configs.defaults

    run_broker(tmp_path, scenario)


def test_increments_set_delete_append_and_subtract(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", retention_ms="5000")), 7)
        steps: list[tuple[list[Change], dict[str, str]]] = [
            (
                [("segment.bytes", SET, "99999999"), ("cleanup.policy", APPEND, "compact")],
                {
                    "retention.ms": "5000",
                    "segment.bytes": "99999999",
                    "cleanup.policy": "delete,compact",
                },
            ),
            (
                [("retention.ms", DELETE, None), ("cleanup.policy", SUBTRACT, "delete")],
                {"segment.bytes": "99999999", "cleanup.policy": "compact"},
            ),
        ]
        for changes, expected in steps:
            assert code(await broker.ask(increments("orders", *changes), 1)) is ErrorCode.NONE
            assert overrides(broker) == expected
        dry = increments("orders", ("retention.ms", SET, "1"), dry=True)
        assert code(await broker.ask(dry, 0)) is ErrorCode.NONE
        refusals: list[tuple[list[Change], ErrorCode]] = [
            ([("segment.bytes", APPEND, "1")], ErrorCode.INVALID_CONFIG),
            ([("segment.bytes", SET, "x")], ErrorCode.INVALID_CONFIG),
            ([("segment.bytes", SET, None)], ErrorCode.INVALID_REQUEST),
            ([("segment.bytes", 9, "1")], ErrorCode.INVALID_REQUEST),
            (
                [("segment.bytes", SET, "99999999"), ("segment.bytes", DELETE, None)],
                ErrorCode.INVALID_REQUEST,
            ),
        ]
        for changes, refusal in refusals:
            assert code(await broker.ask(increments("orders", *changes), 1)) is refusal
        assert overrides(broker) == {"segment.bytes": "99999999", "cleanup.policy": "compact"}

    run_broker(tmp_path, scenario)


def test_a_resource_named_twice_is_refused_and_others_are_not(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders"), new("other")), 7)
        request = increments("orders", ("retention.ms", SET, "1"))
        request.resources += increments("orders", ("retention.ms", SET, "2")).resources
        request.resources += increments("other", ("retention.ms", SET, "3")).resources
        response = await broker.ask(request, 1)
        assert [r.error_code for r in response.responses] == [
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NONE,
        ]

    run_broker(tmp_path, scenario)


def test_static_broker_keys_are_refused_by_name(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        request = increments("0", ("log.dirs", SET, "/x"), kind=BROKER)
        response = await broker.ask(request, 1)
        assert code(response) is ErrorCode.INVALID_REQUEST
        assert "log.dirs" in response.responses[0].error_message

    run_broker(tmp_path, scenario, broker_id=0)


def broker_change(name: str, *changes: Change, dry: bool = False) -> IncrementalAlterConfigsRequest:
    return increments(name, *changes, kind=BROKER, dry=dry)


def test_a_brokers_own_setting_beats_the_cluster_default_beats_the_file(tmp_path: Path) -> None:
    key = "log.segment.bytes"

    async def described(broker: OneBroker) -> tuple[str, int, list[tuple[str, int]]]:
        request = description(BROKER, "0", key, include_synonyms=True)
        (config,) = (await broker.ask(request, 4)).results[0].configs
        return config.value, config.config_source, [(s.value, s.source) for s in config.synonyms]

    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        partition = broker.replicas.partition("orders", 0)
        assert partition is not None
        assert await described(broker) == ("1073741824", 5, [("1073741824", 5)])

        answer = await broker.ask(broker_change("", (key, SET, "5000000")), 1)
        assert code(answer) is ErrorCode.NONE
        assert await described(broker) == ("5000000", 3, [("5000000", 3), ("1073741824", 5)])
        assert partition.log.config.segment_bytes == 5_000_000

        await broker.ask(broker_change("0", (key, SET, "7000000")), 1)
        assert (await described(broker))[:2] == ("7000000", 2)
        assert partition.log.config.segment_bytes == 7_000_000

        await broker.ask(broker_change("0", (key, DELETE, None)), 1)
        await broker.ask(broker_change("", (key, DELETE, None)), 1)
        assert (await described(broker))[:2] == ("1073741824", 5)
        assert partition.log.config.segment_bytes == 1 << 30

    run_broker(tmp_path, scenario, broker_id=0)


def test_create_topics_returns_the_current_default_configs(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(broker_change("", ("log.segment.bytes", SET, "5000000")), 1)
        (created,) = (await broker.ask(creation(new("orders")), 7)).topics
        (config,) = [one for one in created.configs if one.name == "segment.bytes"]
        assert (config.value, config.config_source) == ("5000000", 3)

    run_broker(tmp_path, scenario, broker_id=0)


def test_the_cluster_default_is_described_alone(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(broker_change("", ("log.retention.ms", SET, "777")), 1)
        await broker.ask(broker_change("0", ("log.cleaner.threads", SET, "2")), 1)
        configs = (await broker.ask(description(BROKER, ""), 4)).results[0].configs
        assert [(c.name, c.value, c.config_source) for c in configs] == [
            ("log.retention.ms", "777", 3)
        ]

    run_broker(tmp_path, scenario, broker_id=0)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("0", ("num.partitions", SET, "3"), "Cannot update these configs dynamically"),
        ("0", ("log.retention.ms", SET, "soon"), "Not a number"),
        ("0", ("num.replica.fetchers", SET, "9"), "double or halve"),
        ("0", ("log.retention.ms", SET, "0"), "at least 1"),
        ("0", ("listeners", SET, "PLAINTEXT"), "a listener is written NAME://host:port"),
        ("", ("listeners", SET, "PLAINTEXT://:1"), "at default cluster level"),
        ("7", ("log.retention.ms", SET, "5"), "not broker '7'"),
    ],
)
def test_invalid_dynamic_broker_configs_are_refused(
    name: str, change: Change, said: str, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(broker_change(name, change), 1)
        assert code(response) is ErrorCode.INVALID_REQUEST
        assert said in response.responses[0].error_message

    run_broker(tmp_path, scenario, broker_id=0)


def test_a_dynamic_only_throttle_can_be_set(tmp_path: Path) -> None:
    rate = "leader.replication.throttled.rate"

    async def scenario(broker: OneBroker) -> None:
        assert code(await broker.ask(broker_change("0", (rate, SET, "1000")), 1)) is ErrorCode.NONE
        assert broker.config.leader_replication_throttled_rate == 1000
        (config,) = (await broker.ask(description(BROKER, "0", rate), 4)).results[0].configs
        assert (config.value, config.config_source) == ("1000", 2)
        await broker.ask(broker_change("0", (rate, DELETE, None)), 1)
        assert (await broker.ask(description(BROKER, "0", rate), 4)).results[0].configs == []

    run_broker(tmp_path, scenario, broker_id=0)


def test_an_invalid_config_written_to_zookeeper_directly_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        settings = {"log.retention.ms": "soon", "log.segment.bytes": "5000000", "listeners": "x"}
        await write_config(broker.store, "brokers", "0", settings)
        await broker.topic_configs.dynamic.refresh()
        assert broker.config.log_segment_bytes == 5_000_000
        assert broker.config.log_retention_ms is None
        assert "log.retention.ms" in caplog.text
        assert "listeners" in caplog.text

    run_broker(tmp_path, scenario, broker_id=0)


def test_every_type_that_is_described_is_listed_alone(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        for kind in range(128):
            [described] = (await broker.ask(description(kind, "0"), 4)).results
            listed = await broker.ask(ListConfigResourcesRequest(resource_types=[kind]), 1)
            is_known = described.error_code != ErrorCode.INVALID_REQUEST
            known_code = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
            assert listed.error_code == known_code, kind
            names = [(one.resource_type, one.resource_name) for one in listed.config_resources]
            assert names == ([(kind, "0")] if kind in (BROKER, BROKER_LOGGER) else [])

    run_broker(tmp_path, scenario, broker_id=0)


def test_resources_with_configurations_are_listed(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        response = await broker.ask(ListConfigResourcesRequest(resource_types=[]), 1)
        listed = {(r.resource_type, r.resource_name) for r in response.config_resources}
        assert listed == {(TOPIC, "orders"), (BROKER, "0"), (BROKER_LOGGER, "0")}
        response = await broker.ask(ListConfigResourcesRequest(resource_types=[77]), 1)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        response = await broker.ask(ListConfigResourcesRequest(), 0)
        assert response.config_resources == []

    run_broker(tmp_path, scenario)
