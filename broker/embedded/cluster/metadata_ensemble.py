"""The metadata store of a cluster in one process: one tree, and a session for each broker.

Takes the place of ZooKeeper, with its rules: an ephemeral node goes with its session, and a session
expires when its broker has been silent for `zookeeper.session.timeout.ms`, as a paused one is.
Brokers run on loops of their own, so a lock guards the tree, and watches are called on the loop of
their owner.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from typing import TYPE_CHECKING, Final

from broker.embedded.errors import EmbeddedBrokerError
from controller.metadata_store.store import (
    Change,
    ChangeKind,
    Delete,
    Operation,
    Result,
    SessionExpiredError,
    StoreError,
    StoreUnavailableError,
    Watch,
    Znode,
)
from controller.metadata_store.tree import Applied, ZnodeTree
from controller.metadata_store.tree_store import TreeStore
from controller.znodes import TOPICS, decode_state, decode_topic, topic_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

BEATS_PER_SESSION: Final = 6


class MetadataEnsemble:
    """The tree and the sessions. Any thread may use it."""

    def __init__(self, session_seconds: float) -> None:
        self.session_seconds = session_seconds
        self.lock = threading.RLock()
        self.tree = ZnodeTree()
        self._numbers = itertools.count(1)
        self._sessions: dict[int, float] = {}
        """Time at which each session was last active, by its number."""
        self._owners: dict[int, int] = {}
        """Broker of each session."""
        self.unreachable: set[int] = set()
        """Brokers that are cut off from it."""

    def open_session(self, broker_id: int) -> int:
        """Begin a session of a broker; returns its number."""
        with self.lock:
            number = next(self._numbers)
            self._owners[number] = broker_id
            self._sessions[number] = time.monotonic()
            return number

    def beat(self, number: int) -> None:
        """Note a session's heartbeat, and end sessions that have been silent for too long."""
        now = time.monotonic()
        with self.lock:
            if number in self._sessions:
                self._sessions[number] = now
            self._end_silent(now)

    def age(self, brokers: Iterable[int], seconds: float) -> None:
        """Let `seconds` pass in which brokers are silent: their sessions may expire."""
        silent = set(brokers)
        with self.lock:
            for number, heard in list(self._sessions.items()):
                if self._owners[number] in silent:
                    self._sessions[number] = heard - seconds
            self._end_silent(time.monotonic())

    def is_open(self, number: int) -> bool:
        """Return whether a session is open."""
        return number in self._sessions

    def expire(self, number: int) -> None:
        """End a session: its ephemeral nodes go."""
        with self.lock:
            if self._sessions.pop(number, None) is None:
                return
            del self._owners[number]
            paths = self.tree.ephemerals().get(number, [])
            tell(self.tree.apply([Delete(path) for path in paths], number))

    def apply(self, operations: Sequence[Operation], number: int) -> list[Result]:
        """Do a transaction. Raises StoreError."""
        with self.lock:
            if number not in self._sessions:
                raise SessionExpiredError("/", "the session has expired")
            applied = self.tree.apply(operations, number)
            tell(applied)
            return applied.results

    def out_of_sync(self, brokers: Collection[int]) -> list[str]:
        """Partitions with a replica on one of these brokers that is not in sync, by name."""
        with self.lock:
            nodes = dict(self.tree.nodes)
        found = []
        for path, node in nodes.items():
            if not (path.startswith(f"{TOPICS}/") and path.endswith("/state")):
                continue
            _, _, _, topic, _, partition, _ = path.split("/")
            owner = nodes[topic_path(topic)]
            replicas = decode_topic(topic, owner.data).partitions.get(int(partition), ())
            if not {*replicas} & {*brokers} <= {*decode_state(path, node.data).in_sync_replicas}:
                found.append(f"{topic}-{partition}")
        return found

    def _end_silent(self, now: float) -> None:
        for number, heard in list(self._sessions.items()):
            if now - heard > self.session_seconds:
                self.expire(number)

    def check_partition(self, topic: str, partition: int) -> None:
        """Raise EmbeddedBrokerError if there is no such topic or partition in the cluster."""
        with self.lock:
            node = self.tree.nodes.get(topic_path(topic))
        if node is None:
            raise EmbeddedBrokerError(f"there is no topic {topic}")
        partitions = decode_topic(topic, node.data).partitions
        if partition not in partitions:
            last = f"the last partition is {topic}-{len(partitions) - 1}"
            raise EmbeddedBrokerError(f"there is no {topic}-{partition}: {last}")


def tell(applied: Applied) -> None:
    """Call the watches that a transaction has triggered, each of which finds its own loop."""
    for watch, change in applied.notices:
        watch(change)


class EnsembleStore(TreeStore):
    """The `MetadataStore` of one broker; on that broker's loop."""

    def __init__(self, ensemble: MetadataEnsemble, broker_id: int) -> None:
        super().__init__(ensemble.tree)
        self._ensemble = ensemble
        self._broker_id = broker_id
        self._loop = asyncio.get_running_loop()
        self._session = ensemble.open_session(broker_id)
        self._listeners: list[Callable[[], None]] = []
        self._watches: dict[_Watching, None] = {}
        """Watches that are set and have not fired."""
        self._is_closed = False
        self._was_cut_off = False
        self._pause = ensemble.session_seconds / BEATS_PER_SESSION
        self._timer = self._loop.call_later(self._pause, self._beat)

    @property
    def session_id(self) -> int:
        """Owner of this broker's ephemeral nodes."""
        return self._session

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Have `listener` called when there is a new session."""
        self._listeners.append(listener)

    @property
    def is_reachable(self) -> bool:
        """True if the store is reachable, and the session valid."""
        return not self._is_cut_off and self._ensemble.is_open(self._session)

    async def wait_until_reachable(self) -> None:
        """Return once it is so."""
        while not self.is_reachable:
            if self._is_closed:
                raise SessionExpiredError("/", "the store is closed")
            await self._rest()

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """Read a node."""
        self._check(path)
        with self._ensemble.lock:
            return await super().get(path, self._watched(path, watch))

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read many nodes."""
        self._check(paths[0] if paths else "/")
        with self._ensemble.lock:
            return await super().get_many(paths)

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        """Read a node that may be absent."""
        self._check(path)
        with self._ensemble.lock:
            return await super().exists(path, self._watched(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Read the names below a node."""
        self._check(path)
        with self._ensemble.lock:
            return await super().children(path, self._watched(path, watch))

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Do each transaction at once."""
        outcomes: list[list[Result] | StoreError] = []
        for operations in transactions:
            try:
                self._check("/")
                outcomes.append(self._ensemble.apply(operations, self._session))
            except StoreError as error:
                outcomes.append(error)
        return outcomes

    async def close(self) -> None:
        """End the session."""
        self.end()

    def end(self) -> None:
        """End the session at once: from any thread, as the broker has ended."""
        self._is_closed = True
        self._ensemble.expire(self._session)
        self._loop.call_soon_threadsafe(self._timer.cancel)

    @property
    def _is_cut_off(self) -> bool:
        return self._broker_id in self._ensemble.unreachable

    def _check(self, path: str) -> None:
        if self._is_closed:
            raise SessionExpiredError(path, "the store is closed")
        if self._is_cut_off:  # which then cannot learn that its session has expired
            raise StoreUnavailableError(path, "the metadata store does not answer")
        if not self._ensemble.is_open(self._session):
            raise SessionExpiredError(path, "the session has expired")

    def _beat(self) -> None:
        """Show that this broker is alive; with a session that has ended, begin another."""
        if self._is_closed:
            return
        self._timer = self._loop.call_later(self._pause, self._beat)
        if self._is_cut_off:
            self._was_cut_off = True
            return
        self._ensemble.beat(self._session)
        is_new = not self._ensemble.is_open(self._session)
        if is_new:
            self._session = self._ensemble.open_session(self._broker_id)
            for listener in self._listeners:
                listener()
        if is_new or self._was_cut_off:
            self._was_cut_off = False
            for watching in list(self._watches):
                watching(Change(ChangeKind.SESSION, watching.path))

    def _watched(self, path: str, watch: Watch | None) -> Watch | None:
        if watch is None:
            return None
        watching = _Watching(path, watch, self)
        self._watches[watching] = None
        return watching

    def tell(self, watching: _Watching, change: Change) -> None:
        """Call a watch once; from any thread. A session that is cut off gets it afterwards."""

        def call() -> None:
            if watching in self._watches and not (self._is_cut_off or self._is_closed):
                del self._watches[watching]
                watching.watch(change)

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    async def _rest(self) -> None:
        over = self._loop.create_future()
        timer = self._loop.call_later(self._pause, over.set_result, None)
        try:
            await over
        finally:
            timer.cancel()


class _Watching:
    """A watch, and whose it is."""

    __slots__ = ("_store", "path", "watch")

    def __init__(self, path: str, watch: Watch, store: EnsembleStore) -> None:
        self.path = path
        self.watch = watch
        self._store = store

    def __call__(self, change: Change) -> None:
        self._store.tell(self, change)
