"""ZooKeeper, as brokers meet it: latency, interruptions, sessions that expire."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING

from controller.metadata_store.store import (
    Change,
    ChangeKind,
    Delete,
    Operation,
    OutcomeUnknownError,
    Result,
    SessionExpiredError,
    StoreError,
    StoreUnavailableError,
    Watch,
    Znode,
)
from controller.metadata_store.tree_store import TreeStore
from controller.znodes import CONTROLLER
from tests.controller.memory_store import MemoryEnsemble, MemoryStore
from tests.simulation.machine.hosts import HOST, Host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.machine.network import Network
    from tests.simulation.machine.virtual_loop import VirtualLoop

ZOOKEEPER = "zookeeper"
HEARTBEAT_SECONDS = 0.5


class SimulatedZooKeeper:
    """The ensemble, and the sessions that it keeps."""

    def __init__(self, network: Network, session_seconds: float) -> None:
        self.network = network
        self.session_seconds = session_seconds
        self.is_down = False
        self.ensemble = MemoryEnsemble()
        self.on_write: Callable[[str, Sequence[Operation]], None] | None = None
        """Hears of each transaction that succeeded, and whose it was."""

    async def depose(self) -> None:
        """Take the controller's node away, as an administrator can."""
        await self.ensemble.connect().multi_many([[Delete(CONTROLLER)]])

    def reaches(self, host: Host) -> bool:
        """Return whether requests and answers get through."""
        network = self.network
        return (
            not self.is_down
            and not host.is_frozen
            and not network.is_cut(host.name, ZOOKEEPER)
            and not network.is_cut(ZOOKEEPER, host.name)
        )

    def connect(self) -> SimulatedStore:
        """A client of the running host."""
        host = HOST.get()
        assert host is not None
        return SimulatedStore(self, host)


class SimulatedStore(TreeStore):
    """The `MetadataStore` of one broker; makes a new session when one expired."""

    def __init__(self, zookeeper: SimulatedZooKeeper, host: Host) -> None:
        super().__init__(zookeeper.ensemble.tree)
        self._zookeeper = zookeeper
        self._network = zookeeper.network
        self._host = host
        self._session: MemoryStore = zookeeper.ensemble.connect()
        self._last_heard = self._network.loop.now
        self._listeners: list[Callable[[], None]] = []
        self._watches: dict[_Watching, None] = {}
        """Watches that have not fired yet."""
        self._is_closed = False
        self._is_interrupted = False
        self._is_stale = False
        # The ensemble counts the time of sessions, whatever became of their clients.
        self._schedule_heartbeat()

    def _schedule_heartbeat(self) -> None:
        context = contextvars.Context()
        context.run(self._network.loop.call_later, HEARTBEAT_SECONDS, self._heartbeat)

    def _heartbeat(self) -> None:
        if self._is_closed and not self._host.is_dead:
            return
        now = self._network.loop.now
        if not self._host.is_dead and self._zookeeper.reaches(self._host):
            self._last_heard = now
            if self._session._expired or self._is_interrupted:
                self._network.loop.call_soon(self._recover)
        elif not self._zookeeper.is_down:
            if now - self._last_heard > self._zookeeper.session_seconds:
                self._session.expire()
                if self._host.is_dead:
                    return
            else:
                self._is_interrupted = self._is_interrupted or not self._host.is_dead
        else:
            self._last_heard = now  # its sessions' time stands still while the ensemble is down
            self._is_interrupted = True
        self._schedule_heartbeat()

    def _recover(self) -> None:
        if self._is_closed or self._host.is_dead:
            return
        is_new = self._session._expired
        if is_new:
            self._session = self._zookeeper.ensemble.connect()
        if is_new or self._is_stale:
            self._is_stale = False
            for listener in self._listeners:
                listener()
        self._is_interrupted = False
        for watching in list(self._watches):  # as after each reconnect in `ZooKeeperStore`
            watching.tell(Change(ChangeKind.SESSION, watching.path))

    @property
    def session_id(self) -> int:
        return self._session.session_id

    def on_interruption(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    @property
    def is_reachable(self) -> bool:
        return self._zookeeper.reaches(self._host) and not self._session._expired

    async def wait_until_reachable(self) -> None:
        while not self.is_reachable:
            if self._is_closed:
                raise SessionExpiredError("/", "the store is closed")
            await asyncio.sleep(HEARTBEAT_SECONDS / 5)

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        await self._round_trip(path)
        return await super().get(path, self._watched(path, watch))

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        await self._round_trip(paths[0] if paths else "/")
        return await super().get_many(paths)

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        await self._round_trip(path)
        return await super().exists(path, self._watched(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        await self._round_trip(path)
        return await super().children(path, self._watched(path, watch))

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        if not transactions:
            return []
        await self._half_trip("/")
        outcomes = await self._session.multi_many(transactions)
        if self._zookeeper.on_write is not None:
            for operations, outcome in zip(transactions, outcomes, strict=True):
                if not isinstance(outcome, StoreError):
                    self._zookeeper.on_write(self._host.name, operations)
        await asyncio.sleep(self._network.delay())
        if not self._zookeeper.reaches(self._host):
            self._is_stale = True
            self._is_interrupted = True
            error = OutcomeUnknownError("/", "the connection broke while it was under way")
            return [error for _ in transactions]
        return outcomes

    async def close(self) -> None:
        self._is_closed = True
        if self._zookeeper.reaches(self._host):
            self._session.expire()

    def _watched(self, path: str, watch: Watch | None) -> Watch | None:
        """A watch that is told after the network's delay, and not across a cut."""
        if watch is None:
            return None
        network, host, zookeeper = self._network, self._host, self._zookeeper
        loop = network.loop
        watching = _Watching(path, watch, self._watches, loop)

        def notice(change: Change) -> None:
            def tell() -> None:
                if zookeeper.reaches(host):
                    watching.tell(change)
                elif not host.is_dead:
                    contextvars.Context().run(loop.call_later, HEARTBEAT_SECONDS, tell)

            contextvars.Context().run(loop.call_later, network.delay(), tell)

        return notice

    async def _round_trip(self, path: str) -> None:
        await self._half_trip(path)
        await asyncio.sleep(self._network.delay())
        if not self._zookeeper.reaches(self._host):
            raise StoreUnavailableError(path, "ZooKeeper does not answer")

    async def _half_trip(self, path: str) -> None:
        await asyncio.sleep(self._network.delay())
        if self._session._expired:
            raise SessionExpiredError(path, "the session has expired")
        if not self._zookeeper.reaches(self._host):
            raise StoreUnavailableError(path, "ZooKeeper cannot be reached")


class _Watching:
    """A watch, and whose turn it is when it is told, which it is once."""

    def __init__(
        self, path: str, watch: Watch, pending: dict[_Watching, None], loop: VirtualLoop
    ) -> None:
        self.path = path
        self._watch = watch
        self._pending = pending
        self._loop = loop
        self._context = contextvars.copy_context()
        pending[self] = None

    def tell(self, change: Change) -> None:
        if self in self._pending:
            del self._pending[self]
            self._loop.call_soon(self._watch, change, context=self._context)
