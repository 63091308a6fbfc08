"""Values too large for the metadata store are refused as too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import broker.handlers.brokers.alter_configs
import broker.handlers.topics.create_partitions
import broker.handlers.topics.create_topics  # noqa: F401  (the handlers register themselves)
from broker.handlers.brokers.config_resources import BROKER
from controller.brokers.dynamic_configs import read_config
from protocol.errors import ErrorCode
from tests.broker.handlers.brokers.test_configs import SET, increments
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import codes, creation, growth, new

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_BYTES = 5000


def test_a_broker_does_not_take_more_settings_than_its_node_holds(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.store.largest_bytes = LARGEST_BYTES
        changes = [(f"plugin.{number}", SET, "x" * 1000) for number in range(5)]
        response = await broker.ask(increments("", *changes, kind=BROKER), 1)

        (answer,) = response.responses
        assert answer.error_code == ErrorCode.INVALID_CONFIG
        assert "too many bytes" in answer.error_message
        assert await read_config(broker.store, "brokers", "<default>") == {}

    run_broker(tmp_path, scenario, broker_id=0)


def test_a_topic_does_not_get_more_partitions_than_its_node_holds(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.store.largest_bytes = LARGEST_BYTES
        assert codes(await broker.ask(creation(new("wide", 1000)), 7)) == {
            "wide": ErrorCode.POLICY_VIOLATION
        }
        await broker.ask(creation(new("orders", 2)), 7)
        assert codes(await broker.ask(growth("orders", 1000), 3)) == {
            "orders": ErrorCode.POLICY_VIOLATION
        }
        known = broker.metadata.topic("orders")
        assert known is not None
        assert len(known.partitions) == 2

    run_broker(tmp_path, scenario)
