"""Admin requests about many topics or partitions give way to others between two of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import broker.handlers.create_partitions
import broker.handlers.create_topics
import broker.handlers.delete_topics
import broker.handlers.describe_configs  # noqa: F401  (the handlers register themselves)
from protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.test_create_topics import creation, growth, new
from tests.broker.handlers.test_new_partitions_limit import placed

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

MANY = 200


async def turns_of_others(broker: OneBroker, request: Request, version: int) -> int:
    """How often others could do something while a request was served."""
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


@pytest.mark.parametrize("name", REQUESTS)
def test_others_are_served_between_two_steps(name: str, tmp_path: Path) -> None:
    request, version = REQUESTS[name]

    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 1)), 7)
        assert await turns_of_others(broker, request, version) >= MANY

    run_broker(tmp_path, scenario)
