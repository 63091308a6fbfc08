"""Our answers to the golden scripts are Apache's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from controller.topics.topics import NewTopic
from tests.broker.coordinators.golden.golden_script import Script
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker

if TYPE_CHECKING:
    from protocol.schema import Request

SCRIPTS = sorted(Path(__file__).with_name("groups").glob("*.txt"))
TURNS = 20
"""Turns of the event loop after which a request that is not waited for has arrived."""


class InMemory:
    """The broker of the tests as the peer of a script."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker
        self._sent: dict[str, asyncio.Future[Any]] = {}

    async def ask(self, request: Request, version: int) -> Any:
        return await self._broker.ask(request, version)

    async def send(self, label: str, request: Request, version: int) -> None:
        self._sent[label] = asyncio.ensure_future(  # noqa: TID251
            self._broker.ask(request, version)
        )
        for _ in range(TURNS):
            await asyncio.sleep(0)  # noqa: TID251

    async def wait(self, label: str) -> Any:
        return await self._sent.pop(label)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_answers_are_those_of_apache(path: Path, tmp_path: Path) -> None:
    text = path.read_text()

    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.topics.create([NewTopic("flights", 3)], broker.metadata.racks)
        await broker.metadata.wait_until(lambda: broker.metadata.topic("flights") is not None)
        topic_ids = {"flights": broker.metadata.topic_id("flights")}
        assert await Script(InMemory(broker), topic_ids).replay(text) == text

    run_group_broker(tmp_path, scenario)
