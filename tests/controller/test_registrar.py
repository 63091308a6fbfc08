"""A broker's registration: made, kept, made again; and the controller after an interruption."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.election import ControllerMovedError
from controller.memory_store import MemoryEnsemble, MemoryStore
from controller.registrar import BrokerIdTakenError, Registrar
from controller.registration import create_skeleton
from controller.store import Create
from controller.znodes import BrokerRegistration, Endpoint, broker_path
from tests.controller.harness import Cluster, Member, run_cluster, turns

if TYPE_CHECKING:
    from controller.context import Term

PATIENCE_MS = 10_000
REGISTRATION = BrokerRegistration((Endpoint("PLAINTEXT", "here", 9092),))


def _registrar(store: MemoryStore, patience_ms: int = PATIENCE_MS) -> Registrar:
    return Registrar(store, 3, lambda: REGISTRATION, patience_ms)


def test_epoch_is_the_transaction_that_made_the_node() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        registrar = _registrar(store)
        epoch = await registrar.ensure()
        node = await store.get(broker_path(3))
        assert (registrar.epoch, node.czxid, node.version) == (epoch, epoch, 1)
        assert await registrar.ensure() == epoch
        assert await store.get(broker_path(3)) == node

    asyncio.run(scenario())


def test_registration_waits_for_the_node_of_a_session_that_died() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        dead, store = ensemble.connect(), ensemble.connect()
        await create_skeleton(store)
        old = await _registrar(dead).ensure()
        waiting = asyncio.gather(_registrar(store).ensure())
        await turns()
        assert not waiting.done()
        await dead.set(broker_path(3), b"still writing")
        await turns()
        assert not waiting.done()
        dead.expire()
        [new] = await waiting
        assert new > old
        assert (await store.get(broker_path(3))).ephemeral_owner == store.session_id

    asyncio.run(scenario())


def test_id_of_another_broker_that_lives_is_refused_in_the_end() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        other, store = ensemble.connect(), ensemble.connect()
        await create_skeleton(store)
        await _registrar(other).ensure()
        with pytest.raises(BrokerIdTakenError, match=r"id 3 .* as PLAINTEXT://here:9092"):
            await _registrar(store, patience_ms=1).ensure()

    asyncio.run(scenario())


def _term(member: Member) -> Term | None:
    context = member.controller.context
    return None if context is None else context.term


def test_interrupted_controller_finds_itself_in_office_and_tells_everything_anew() -> None:
    async def scenario(cluster: Cluster) -> None:
        member = cluster.members[0]
        term = _term(member)
        member.channels.take()
        prepared: list[str] = []

        async def prepare() -> None:
            prepared.append("registered")

        member.controller.before_election = prepare
        member.controller.interrupted()
        assert _term(member) is None
        await turns()
        assert _term(member) == term
        assert prepared == ["registered"]
        told = {broker_id for broker_id, request in member.channels.take()}
        assert told == {0, 1}

    run_cluster(scenario, 0, 1)


def test_interrupted_controller_whose_office_was_taken_stays_out_of_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = cluster.members[0], cluster.members[1]
        first.store.expire()
        first.controller.interrupted()
        await turns()
        assert second.controller.is_active
        assert not first.controller.is_active
        assert first.controller.controller_id == 1

    run_cluster(scenario, 0, 1)


def test_what_an_interruption_overtakes_is_neither_written_nor_sent() -> None:
    async def scenario(cluster: Cluster) -> None:
        controller = cluster.members[0].controller
        office = controller._office
        assert office is not None
        controller.interrupted()
        with pytest.raises(ControllerMovedError):
            await office.store.write([Create("/late")])
        with pytest.raises(ControllerMovedError):
            await office.send()
        assert await cluster.store.exists("/late") is None

    run_cluster(scenario, 0)
