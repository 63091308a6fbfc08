"""A broker's registration: made, kept, made again; and the controller after an interruption."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller import controller
from controller.brokers.election import ControllerMovedError
from controller.brokers.registrar import LOOK_SECONDS, BrokerIdTakenError, Registrar
from controller.brokers.registration import create_skeleton, register_broker
from controller.metadata_store.store import Change, ChangeKind, Create, Watch, Znode
from controller.znodes import BrokerRegistration, Endpoint, broker_path, decode_broker
from tests.controller.harness import Cluster, Member, run_cluster, turns
from tests.controller.memory_store import MemoryEnsemble, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from controller.context import Term
    from controller.metadata_store.tree import ZnodeTree

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


def test_a_registration_is_rewritten_only_in_its_own_session() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        now = [REGISTRATION]
        registrar = Registrar(store, 3, lambda: now[0], PATIENCE_MS)
        await registrar.renew()
        assert await store.exists(broker_path(3)) is None, "it is not registered yet"
        epoch = await registrar.ensure()
        now[0] = BrokerRegistration((Endpoint("PLAINTEXT", "there", 9093),))
        await registrar.renew()
        node = await store.get(broker_path(3))
        assert decode_broker("", node.data).endpoints == now[0].endpoints
        assert (node.czxid, node.ephemeral_owner) == (epoch, store.session_id)
        assert await registrar.ensure() == epoch

    asyncio.run(scenario())


def test_of_two_writers_of_a_registration_the_newest_content_wins() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        ports = iter(range(1, 100))
        last = [0]

        def describe() -> BrokerRegistration:
            last[0] = next(ports)
            return BrokerRegistration((Endpoint("PLAINTEXT", "here", last[0]),))

        registrar = Registrar(store, 3, describe, PATIENCE_MS)
        await registrar.ensure()
        await asyncio.gather(*(registrar.renew() for _ in range(5)))
        node = await store.get(broker_path(3))
        assert decode_broker("", node.data).endpoints[0].port == last[0]

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


def test_the_id_of_a_live_broker_is_refused_after_the_timeout() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        other, store = ensemble.connect(), ensemble.connect()
        await create_skeleton(store)
        await _registrar(other).ensure()
        with pytest.raises(BrokerIdTakenError, match=r"id 3 .* as PLAINTEXT://here:9092"):
            await _registrar(store, patience_ms=1).ensure()

    asyncio.run(scenario())


class _LeapingLoop(asyncio.SelectorEventLoop):
    """Its clock leaps, as for a process that was stopped meanwhile."""

    leap_seconds = 0.0

    def time(self) -> float:
        return super().time() + self.leap_seconds


class _FrozenAtLook(MemoryStore):
    """Its process is stopped while the answer to its first look is under way."""

    looks = 0

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        self.looks += 1
        if self.looks == 1:
            _leap(10 * PATIENCE_MS / 1000)
            await turns()
        return await super().exists(path, watch)


class _WatchNoting(MemoryStore):
    """Keeps the watches, which ZooKeeper's adapter calls when it has a connection again."""

    def __init__(self, tree: ZnodeTree, session_id: int) -> None:
        super().__init__(tree, session_id)
        self.watches: list[Watch] = []

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        if watch is not None:
            self.watches.append(watch)
        return await super().exists(path, watch)


def _leaping(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    with asyncio.Runner(loop_factory=_LeapingLoop) as runner:
        runner.run(scenario())


def _leap(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _LeapingLoop)
    loop.leap_seconds += seconds


async def _pass(seconds: float) -> None:
    """Time passes for a process that is awake."""
    for _ in range(int(seconds / LOOK_SECONDS)):
        _leap(LOOK_SECONDS)
        await turns()


def test_time_in_which_the_broker_was_stopped_is_not_counted() -> None:
    """ZooKeeper may have restarted, too: then it counts the time of all sessions from 0."""

    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        dead, store = ensemble.connect(), ensemble.connect()
        await create_skeleton(store)
        await _registrar(dead).ensure()
        waiting = asyncio.gather(_registrar(store).ensure())
        await turns()
        _leap(100 * PATIENCE_MS / 1000)
        await turns()
        assert not waiting.done()
        dead.expire()
        await waiting

    _leaping(scenario)


def test_broker_that_was_stopped_while_it_looked_takes_its_free_id() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        await create_skeleton(ensemble.connect())
        store = _FrozenAtLook(ensemble.tree, 99)
        assert await _registrar(store).ensure() > 0
        assert (await store.get(broker_path(3))).ephemeral_owner == store.session_id

    _leaping(scenario)


def test_broker_that_was_stopped_while_it_looked_waits_for_the_session_that_it_finds() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        dead = ensemble.connect()
        await create_skeleton(dead)
        await _registrar(dead).ensure()
        store = _FrozenAtLook(ensemble.tree, 99)
        waiting = asyncio.gather(_registrar(store).ensure())
        await turns(300)
        assert not waiting.done()
        dead.expire()
        await waiting
        assert (await store.get(broker_path(3))).ephemeral_owner == 99

    _leaping(scenario)


def test_waiting_for_a_broker_id_restarts_when_its_owner_changes() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        first, second, store = ensemble.connect(), ensemble.connect(), ensemble.connect()
        await create_skeleton(store)
        await _registrar(first).ensure()
        waiting = asyncio.gather(_registrar(store).ensure())
        await turns()
        await _pass(PATIENCE_MS / 1000 - 1)
        first.expire()
        await register_broker(second, 3, REGISTRATION)
        await turns()
        await _pass(PATIENCE_MS / 1000 - 1)
        assert not waiting.done()
        await _pass(2)
        with pytest.raises(BrokerIdTakenError):
            await waiting

    _leaping(scenario)


def test_time_in_which_the_store_was_away_is_not_counted() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        dead, store = ensemble.connect(), _WatchNoting(ensemble.tree, 99)
        await create_skeleton(store)
        await _registrar(dead).ensure()
        waiting = asyncio.gather(_registrar(store).ensure())
        await turns()
        await _pass(PATIENCE_MS / 1000 - 1)
        store.watches[-1](Change(ChangeKind.SESSION, broker_path(3)))
        await turns()
        await _pass(PATIENCE_MS / 1000 - 1)
        assert not waiting.done()
        dead.expire()
        await waiting

    _leaping(scenario)


def test_node_that_an_expired_session_of_its_own_left_behind_is_replaced() -> None:
    """ZOOKEEPER-2985: no other would ever remove it."""

    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = ensemble.connect()
        await create_skeleton(store)
        registrar = _registrar(store)
        old = await registrar.ensure()
        former = store.session_id
        store._session_id = 99
        new = await registrar.ensure()
        node = await store.get(broker_path(3))
        assert former != 99
        assert (node.ephemeral_owner, node.czxid) == (99, new)
        assert new > old

    asyncio.run(scenario())


def test_a_broker_znode_without_session_is_not_replaced() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        await store.create(broker_path(3), b"by hand")
        with pytest.raises(BrokerIdTakenError):
            await _registrar(store, patience_ms=1).ensure()

    asyncio.run(scenario())


def _term(member: Member) -> Term | None:
    context = member.controller.context
    return None if context is None else context.term


def test_interrupted_controller_resumes_its_term_and_sends_full_state() -> None:
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


def test_controller_whose_broker_id_is_taken_is_not_elected_and_retries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller, "RETRY_AFTER_SECONDS", 0.001)

    async def scenario(cluster: Cluster) -> None:
        member = cluster.members[0]
        failures: list[tuple[str, BaseException]] = []
        member.controller.on_failure = lambda name, error: failures.append((name, error))
        tries: list[str] = []

        async def prepare() -> None:
            tries.append("asked")
            if len(tries) < 3:
                raise BrokerIdTakenError(broker_path(0), "registered by another broker")

        member.controller.before_election = prepare
        member.controller.interrupted()
        while not member.controller.is_active:
            await turns()
        assert tries == ["asked"] * 3
        assert failures == []

    run_cluster(scenario, 0)


def test_interrupted_controller_does_not_resume_after_another_election() -> None:
    async def scenario(cluster: Cluster) -> None:
        first, second = cluster.members[0], cluster.members[1]
        first.store.expire()
        first.controller.interrupted()
        await turns()
        assert second.controller.is_active
        assert not first.controller.is_active
        assert first.controller.controller_id == 1

    run_cluster(scenario, 0, 1)


def test_writes_and_requests_of_an_interrupted_controller_are_refused() -> None:
    async def scenario(cluster: Cluster) -> None:
        controller = cluster.members[0].controller
        active = controller._active
        assert active is not None
        controller.interrupted()
        with pytest.raises(ControllerMovedError):
            await active.store.write([Create("/late")])
        with pytest.raises(ControllerMovedError):
            await active.send()
        assert await cluster.store.exists("/late") is None

    run_cluster(scenario, 0)
