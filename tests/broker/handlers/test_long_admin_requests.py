"""Admin requests about many topics or partitions give way to others between two of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.handlers.brokers.config_resources import TOPIC
from protocol.messages.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from tests.broker.handlers.brokers.test_configs import SET
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, growth, new
from tests.broker.handlers.topics.test_new_partitions_limit import placed

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

MANY = 100


async def turns_of_others(broker: OneBroker, request: Request, version: int) -> int:
    """Return the turns that other tasks got while a request was served."""
    taken = 0

    async def others() -> None:
        nonlocal taken
        while True:
            taken += 1
            await asyncio.sleep(0)  # noqa: TID251

    beside = asyncio.get_running_loop().create_task(others())
    await broker.ask(request, version)
    beside.cancel()
    return taken


def topics(count: int) -> list[CreateTopicsRequest.Topic]:
    return [new(f"topic-{number}", retention_ms=str(number)) for number in range(count)]


REQUESTS = {
    "a topic of many partitions": (creation(new("wide", MANY), dry=True), 7),
    "a topic placed by hand": (creation(placed("wide", MANY), dry=True), 7),
    "many topics": (creation(*topics(MANY), dry=True), 7),
    "many topics that cannot be": (creation(*(new(f"no {n}") for n in range(MANY)), dry=True), 7),
    "growth": (growth("orders", MANY + 1, dry=True), 3),
    "topics to delete": (
        DeleteTopicsRequest(topic_names=[f"ghost-{n}" for n in range(MANY)], timeout_ms=1),
        5,
    ),
}


def description(*names: str) -> DescribeConfigsRequest:
    resources = [
        DescribeConfigsRequest.Resource(
            resource_type=TOPIC, resource_name=name, configuration_keys=None
        )
        for name in names
    ]
    return DescribeConfigsRequest(resources=resources, include_documentation=True)


def alteration(*names: str) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.Resource
    change = resource.Config(name="retention.ms", config_operation=SET, value="5")
    return IncrementalAlterConfigsRequest(
        resources=[
            resource(resource_type=TOPIC, resource_name=name, configs=[change]) for name in names
        ],
        validate_only=True,
    )


def test_others_are_served_between_two_topics_that_are_described_or_changed(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(*topics(MANY)), 7)
        names = [topic.name for topic in topics(MANY)]
        assert await turns_of_others(broker, description(*names), 4) >= 2 * MANY
        assert await turns_of_others(broker, alteration(*names), 1) >= MANY

    run_broker(tmp_path, scenario)


def test_long_and_short_descriptions_agree_on_each_topic(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(*topics(10), new("plain"), new("simple")), 7)
        names = ["plain", *(topic.name for topic in topics(10)), "simple", "ghost"]
        for version in range(5):
            together = (await broker.ask(description(*names), version)).results
            assert [result.resource_name for result in together] == names
            for result in together:
                (alone,) = (await broker.ask(description(result.resource_name), version)).results
                assert result == alone

    run_broker(tmp_path, scenario)


def test_a_resource_described_many_times_is_answered_once(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders"), new("other")), 7)
        response = await broker.ask(description(*["orders"] * 1000, "other"), 4)
        assert [result.resource_name for result in response.results] == ["orders", "other"]

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize("name", REQUESTS)
def test_others_are_served_between_two_steps(name: str, tmp_path: Path) -> None:
    request, version = REQUESTS[name]

    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 1)), 7)
        assert await turns_of_others(broker, request, version) >= MANY

    run_broker(tmp_path, scenario)
