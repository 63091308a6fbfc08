"""The controller is notified of brokers that come, go, and change their advertised addresses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.brokers.registered_brokers import RegisteredBrokers
from controller.brokers.registrar import Registrar
from controller.brokers.registration import create_skeleton
from controller.metadata_store.store import StoreUnavailableError
from controller.znodes import BROKER_IDS, BrokerRegistration, Endpoint, broker_path
from tests.controller.harness import turns
from tests.controller.memory_store import MemoryEnsemble

if TYPE_CHECKING:
    from controller.metadata_store.store import Watch
    from tests.controller.memory_store import MemoryStore


class Told:
    """Counter of notifications."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def registrar(store: MemoryStore, broker_id: int, ports: list[int]) -> Registrar:
    """Return the registrar of a broker whose port is the last one."""

    def describe() -> BrokerRegistration:
        return BrokerRegistration((Endpoint("PLAINTEXT", "here", ports[-1]),))

    return Registrar(store, broker_id, describe, 1000)


def test_a_changed_broker_address_is_notified_and_read() -> None:
    async def scenario() -> None:
        ensemble, told, ports = MemoryEnsemble(), Told(), [1]
        store = ensemble.connect()
        await create_skeleton(store)
        one = registrar(store, 1, ports)
        await one.ensure()
        brokers = RegisteredBrokers(ensemble.connect(), told)
        before = await brokers.read()
        await turns()
        assert told.count == 0

        ports.append(2)
        await one.renew()
        await turns()

        assert told.count == 1
        now = await brokers.read()
        assert (now[1].epoch, now[1].registration.endpoints[0].port) == (before[1].epoch, 2)

    asyncio.run(scenario())


def test_each_node_is_watched_once_however_often_it_is_read() -> None:
    async def scenario() -> None:
        ensemble, told, ports = MemoryEnsemble(), Told(), [1]
        store = ensemble.connect()
        await create_skeleton(store)
        one = registrar(store, 1, ports)
        await one.ensure()
        brokers = RegisteredBrokers(store, told)
        for _ in range(10):
            await brokers.read()
        await one.renew()
        await turns()
        assert told.count == 1
        await brokers.read()
        await registrar(ensemble.connect(), 2, ports).ensure()
        await turns()
        assert told.count == 2
        assert (await brokers.read()).keys() == {1, 2}

    asyncio.run(scenario())


@pytest.mark.parametrize("failing", [BROKER_IDS, broker_path(1)])
def test_a_watch_that_could_not_be_set_is_set_by_the_next_read(
    monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    async def scenario() -> None:
        ensemble, told, ports = MemoryEnsemble(), Told(), [1]
        store = ensemble.connect()
        await create_skeleton(store)
        one = registrar(store, 1, ports)
        await one.ensure()
        brokers = RegisteredBrokers(store, told)

        async def fail(path: str, watch: Watch | None = None) -> None:
            raise StoreUnavailableError(path, "away")

        name = "children" if failing == BROKER_IDS else "exists"
        with monkeypatch.context() as broken:
            broken.setattr(store, name, fail)
            with pytest.raises(StoreUnavailableError):
                await brokers.read()
        await brokers.read()
        await one.renew()
        await registrar(ensemble.connect(), 2, ports).ensure()
        await turns()
        assert told.count == 2

    asyncio.run(scenario())
