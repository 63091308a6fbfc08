"""Concurrent changes to one configuration: none is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import broker.handlers.brokers.alter_configs
import broker.handlers.topics.create_topics  # noqa: F401  (the handlers register themselves)
from broker.handlers.brokers.config_resources import BROKER
from controller.brokers.dynamic_configs import read_config
from controller.znodes import CONFIG_CHANGES
from protocol.errors import ErrorCode
from tests.broker.handlers.brokers.test_configs import SET, code, increments, overrides
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new
from tests.controller.harness import turns

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = 20
KEYS = [f"plugin.{number}" for number in range(CLIENTS)]


@pytest.mark.parametrize(("name", "entity"), [("0", "0"), ("", "<default>")])
def test_many_clients_change_one_broker_at_the_same_time(
    name: str, entity: str, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.store.turns_of_a_write = 3
        requests = [increments(name, (key, SET, "1"), kind=BROKER) for key in KEYS]
        answers = await asyncio.gather(*(broker.ask(request, 1) for request in requests))

        assert {code(answer) for answer in answers} == {ErrorCode.NONE}
        assert await read_config(broker.store, "brokers", entity) == dict.fromkeys(KEYS, "1")

    run_broker(tmp_path, scenario, broker_id=0)


def test_two_clients_change_one_topic_at_the_same_time(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        broker.store.turns_of_a_write = 3
        changes = [("retention.ms", SET, "5000"), ("segment.bytes", SET, "1000000")]
        requests = [increments("orders", change) for change in changes]
        answers = await asyncio.gather(*(broker.ask(request, 1) for request in requests))

        assert [code(answer) for answer in answers] == [ErrorCode.NONE] * 2
        assert overrides(broker) == {"retention.ms": "5000", "segment.bytes": "1000000"}

    run_broker(tmp_path, scenario)


def test_a_change_that_was_stored_is_answered_so_though_it_cannot_be_read_back_yet(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        store = broker.store
        store.breaks_at = lambda path: path == CONFIG_CHANGES and not store.has_broken
        answer = await broker.ask(increments("orders", ("retention.ms", SET, "5000")), 1)

        assert store.has_broken
        assert code(answer) is ErrorCode.NONE
        await turns()
        assert overrides(broker) == {"retention.ms": "5000"}

    run_broker(tmp_path, scenario)
