"""AlterConfigs refuses the keys that DescribeConfigs calls read-only, and accepts all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.brokers.config_resources import BROKER, TOPIC
from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS, TOPIC_KEYS
from config.key import PER_BROKER, Type
from config.listeners.listener_config import STORE_KEYS
from protocol.errors import ErrorCode
from tests.broker.handlers.brokers.test_configs import SET, description, increments
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.messages.configs import IncrementalAlterConfigsRequest

SAMPLES = {
    Type.BOOLEAN: "true",
    Type.STRING: "x",
    Type.INT: "1",
    Type.SHORT: "1",
    Type.LONG: "1",
    Type.DOUBLE: "1",
    Type.LIST: "",
    Type.CLASS: "a.b.C",
    Type.PASSWORD: "x",
}
"""For keys that have no value."""


async def described(broker: OneBroker, kind: int, name: str) -> dict[str, Any]:
    response = await broker.ask(description(kind, name), 4)
    return {config.name: config for config in response.results[0].configs}


def value_of(config: Any) -> str:
    """The present value, or one that the key takes."""
    if config.name == "advertised.listeners" and not config.value:
        return "PLAINTEXT://127.0.0.1:9092"
    value: str | None = config.value
    return SAMPLES[Type(config.config_type)] if value is None else value


async def is_taken(broker: OneBroker, kind: int, name: str, config: Any) -> bool:
    value = value_of(config)
    request: IncrementalAlterConfigsRequest = increments(
        name, (config.name, SET, value), kind=kind, dry=True
    )
    response = await broker.ask(request, 1)
    return bool(response.responses[0].error_code == ErrorCode.NONE)


def test_broker_keys_are_read_only_if_and_only_if_a_change_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        for name in DYNAMIC_KEYS:
            await broker.ask(increments("0", (name, SET, "1000"), kind=BROKER), 1)
        configs = await described(broker, BROKER, "0")
        public = {name for name, (_, _, key) in BROKER_KEYS.items() if not key.internal}
        assert configs.keys() == public | DYNAMIC_KEYS.keys()
        contradictions = [
            config.name
            for config in configs.values()
            if config.read_only is await is_taken(broker, BROKER, "0", config)
        ]
        assert sorted(contradictions) == sorted(STORE_KEYS), "each listener has its own"

    run_broker(tmp_path, scenario, broker_id=0, password_encoder_secret="x")


def test_topic_keys_are_read_only_if_and_only_if_a_change_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        configs = await described(broker, TOPIC, "orders")
        assert configs.keys() == {n for n, (_, _, key) in TOPIC_KEYS.items() if not key.internal}
        contradictions = [
            config.name
            for config in configs.values()
            if config.read_only is await is_taken(broker, TOPIC, "orders", config)
        ]
        assert contradictions == []

    run_broker(tmp_path, scenario)


def test_cluster_default_keys_are_read_only_if_and_only_if_a_change_is_refused(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        of_broker = await described(broker, BROKER, "0")
        taken = [c for c in of_broker.values() if await is_taken(broker, BROKER, "", c)]
        for config in taken:
            value = value_of(config)
            await broker.ask(increments("", (config.name, SET, value), kind=BROKER), 1)
        configs = await described(broker, BROKER, "")
        assert configs.keys() == {config.name for config in taken}
        assert [config.name for config in configs.values() if config.read_only] == []
        refused = of_broker.keys() - configs.keys()
        scopes = {BROKER_KEYS[name].key.scope for name in refused if not of_broker[name].read_only}
        assert scopes == {PER_BROKER}

    run_broker(tmp_path, scenario, broker_id=0)


THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
APACHE_TAKES = ["0:0,", ",", "", " ", "0:0,,1:0", "*", "*,", ",*", "0:0, 1:0", " 0:0", "00:00"]
APACHE_REFUSES = ["*,0:0", "0:0,*", "a:b", "0", "0:0:0", "-1:0", "none", "*,*"]


@pytest.mark.parametrize("key", THROTTLED)
@pytest.mark.parametrize(
    ("value", "is_good"),
    [*((value, True) for value in APACHE_TAKES), *((value, False) for value in APACHE_REFUSES)],
)
def test_throttled_replicas_are_taken_and_refused_as_by_apache_kafka(
    key: str, value: str, is_good: bool, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        response = await broker.ask(increments("orders", (key, SET, value)), 1)
        code = response.responses[0].error_code
        assert code == (ErrorCode.NONE if is_good else ErrorCode.INVALID_CONFIG)

    run_broker(tmp_path, scenario)
