"""A step that needs the store, and a connection that breaks meanwhile."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from controller.brokers.registrar import Registrar
from controller.brokers.registration import create_skeleton, generate_broker_id, obtain_cluster_id
from controller.metadata_store import patience
from controller.metadata_store.patience import Patience
from controller.metadata_store.store import NoNodeError, SessionExpiredError, StoreUnavailableError
from controller.znodes import BrokerRegistration, Endpoint, broker_path
from tests.controller.breaking_store import BreakingStore
from tests.controller.memory_store import MemoryEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ENOUGH_MS = 60_000
REGISTRATION = BrokerRegistration((Endpoint("PLAINTEXT", "here", 9092),))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSE_SECONDS", 0.001)


def run(scenario: Callable[[BreakingStore], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        await scenario(BreakingStore(MemoryEnsemble()))

    asyncio.run(main())


def breaks_at_request(number: int) -> Callable[[str], bool]:
    requests = count()
    return lambda _: next(requests) == number


@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
@pytest.mark.parametrize("number", range(7))
def test_a_broker_registers_whichever_request_breaks_the_connection(
    number: int, is_done: bool
) -> None:
    async def scenario(store: BreakingStore) -> None:
        registrar = Registrar(store, 3, lambda: REGISTRATION, ENOUGH_MS)
        patient = Patience(store, ENOUGH_MS)
        store.does_writes = is_done
        store.breaks_at = breaks_at_request(number)

        await patient.do(lambda: create_skeleton(store))
        cluster_id = await patient.do(lambda: obtain_cluster_id(store, "proposed"))
        generated = await patient.do(lambda: generate_broker_id(store, 1000))
        epoch = await patient.do(registrar.ensure)

        assert store.has_broken
        assert cluster_id == await obtain_cluster_id(store, "another")
        assert generated in (1001, 1002)
        node = await store.get(broker_path(3))
        assert (node.ephemeral_owner, node.czxid) == (store.session_id, epoch)

    run(scenario)


def test_an_unreachable_store_raises_after_the_timeout() -> None:
    async def scenario(store: BreakingStore) -> None:
        store.is_away = True
        with pytest.raises(StoreUnavailableError, match="not reachable"):
            await Patience(store, 1).do(lambda: create_skeleton(store))

    run(scenario)


def test_a_store_whose_requests_keep_failing_raises_after_the_timeout() -> None:
    async def scenario(store: BreakingStore) -> None:
        store.breaks_at = lambda _: True
        with pytest.raises(StoreUnavailableError):
            await Patience(store, 20).do(lambda: create_skeleton(store))

    run(scenario)


def test_with_timeout_0_the_first_failure_is_raised() -> None:
    async def scenario(store: BreakingStore) -> None:
        store.breaks_at = breaks_at_request(0)
        with pytest.raises(StoreUnavailableError):
            await Patience(store, 0).do(lambda: create_skeleton(store))

    run(scenario)


def test_other_errors_than_a_broken_connection_are_raised_at_once() -> None:
    async def scenario(store: BreakingStore) -> None:
        async def step() -> None:
            await store.get("/nowhere")

        with pytest.raises(NoNodeError):
            await Patience(store, ENOUGH_MS).do(step)

    run(scenario)


def test_a_store_that_is_closed_meanwhile_is_not_waited_for() -> None:
    async def scenario(store: BreakingStore) -> None:
        await store.close()
        with pytest.raises(SessionExpiredError):
            await Patience(store, 20).do(lambda: create_skeleton(store))

    run(scenario)
