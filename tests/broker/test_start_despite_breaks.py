"""A broker starts although its connection to ZooKeeper breaks on the way."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from broker.app import Broker
from broker.runtime.platform import LocalPlatform
from broker.startup.start_error import StartError
from config.loader import load_broker_config
from controller.metadata_store import patience
from controller.znodes import broker_path
from tests.controller.breaking_store import BreakingStore
from tests.controller.harness import turns
from tests.controller.memory_store import MemoryEnsemble

if TYPE_CHECKING:
    from pathlib import Path

    from config.broker import BrokerConfig
    from controller.zookeeper.security import ZooKeeperSecurity

NEVER_SECONDS = 30.0


class BreakingPlatform(LocalPlatform):
    """This machine, with a ZooKeeper in memory."""

    def __init__(self, store: BreakingStore) -> None:
        super().__init__()
        self._store = store

    async def connect(self, config: BrokerConfig, security: ZooKeeperSecurity) -> BreakingStore:
        return self._store


def configured(directory: Path, **overrides: str) -> BrokerConfig:
    path = directory / "server.properties"
    path.write_text(
        "broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nzookeeper.connect=elsewhere:2181\n"
        f"log.dirs={directory}/data\noffsets.topic.replication.factor=1\n"
    )
    words = [f"{key.replace('_', '.')}={value}" for key, value in overrides.items()]
    return load_broker_config(path, words)[0]


def is_registered(broker: Broker) -> bool:
    return broker.services is not None and broker.services.metadata.is_alive(0)


async def run_until_registered(config: BrokerConfig, store: BreakingStore) -> None:
    broker = Broker(config, BreakingPlatform(store))
    running = asyncio.get_running_loop().create_task(broker.run())
    async with asyncio.timeout(NEVER_SECONDS):
        while not running.done() and not is_registered(broker):
            await turns(1)
        broker.stop()
        await running


@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
@pytest.mark.parametrize("number", range(11))
def test_a_broker_registers_whichever_request_of_its_start_breaks_the_connection(
    number: int, is_done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.001)

    async def scenario() -> None:
        store = BreakingStore(MemoryEnsemble())
        requests = count()
        store.breaks_at = lambda _: next(requests) == number
        store.does_writes = is_done
        await run_until_registered(configured(tmp_path), store)
        assert store.has_broken

    asyncio.run(scenario())


def test_a_broker_whose_zookeeper_does_not_come_back_ends_with_the_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = BreakingStore(MemoryEnsemble())

        def breaks_for_good(path: str) -> bool:
            store.is_away = store.is_away or path == broker_path(0)
            return store.is_away

        store.breaks_at = breaks_for_good
        config = configured(tmp_path, zookeeper_connection_timeout_ms="1")
        with pytest.raises(StartError, match="not reachable"):
            await run_until_registered(config, store)

    asyncio.run(scenario())


class SlowlyClosedStore(BreakingStore):
    """Takes its time to end its session."""

    is_closed = False

    async def close(self) -> None:
        await turns(50)
        await super().close()
        self.is_closed = True


def test_a_store_that_was_being_opened_when_the_broker_stops_is_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = SlowlyClosedStore(MemoryEnsemble())
        store.answers_writes = asyncio.Event()  # which nobody sets
        broker = Broker(configured(tmp_path), BreakingPlatform(store))
        running = asyncio.get_running_loop().create_task(broker.run())
        async with asyncio.timeout(NEVER_SECONDS):
            while await store.exists("/brokers") is None:
                await turns(1)
            broker.stop()
            await running
        assert store.is_closed

    asyncio.run(scenario())
