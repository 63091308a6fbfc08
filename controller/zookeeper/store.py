"""The metadata store in ZooKeeper: the port's reads, writes and watches over one session.

Without a connection, requests wait for it a little and are then refused; a refused one was not
carried out, and will not be. Watches are kept here, because ZooKeeper drops those of a broken
connection: after reconnecting, all of them are called once, as the port allows, after the listeners
to the interruption.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kazoo.exceptions import KazooException
from kazoo.exceptions import NoNodeError as KazooNoNodeError
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import EventType

from controller.metadata_store.patience import Patience
from controller.metadata_store.single_writes import SingleWrites
from controller.metadata_store.store import (
    Change,
    ChangeKind,
    NodeExistsError,
    NoNodeError,
    Operation,
    OutcomeUnknownError,
    Result,
    SessionExpiredError,
    StoreError,
    StoreUnavailableError,
    TooLargeError,
    Watch,
    Znode,
)
from controller.zookeeper.batches import Batch, gather, size_in_bytes
from controller.zookeeper.kazoo_client import NotConnectedError
from controller.zookeeper.requests import (
    UNREACHABLE,
    store_error,
    transaction_request,
    transaction_results,
    znode,
)
from controller.zookeeper.security import UNPROTECTED, acl_of
from controller.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.zookeeper.address import ZooKeeperAddress
    from controller.zookeeper.security import ZooKeeperSecurity

logger = logging.getLogger(__name__)

RECONNECT_GRACE_MS = 2000
"""Time that a request waits for a broken connection. Fixed: as a rule the next server of the
ensemble takes over in less."""

_KINDS = {
    EventType.CREATED: ChangeKind.CREATED,
    EventType.CHANGED: ChangeKind.CHANGED,
    EventType.DELETED: ChangeKind.DELETED,
    EventType.CHILD: ChangeKind.CHILDREN,
}


class RequestLimits(NamedTuple):
    """Bounds on the requests to ZooKeeper."""

    in_flight: int
    """Requests in flight."""
    request_bytes: int
    """Size of a write; ZooKeeper's own limit is `jute.maxbuffer`."""


class ZooKeeperStore(SingleWrites):
    """`controller.metadata_store.store.MetadataStore` in a ZooKeeper ensemble."""

    def __init__(
        self, session: ZooKeeperSession, max_request_bytes: int, *, sets_acl: bool = False
    ) -> None:
        """Use `connect` instead."""
        self._session = session
        self._max_request_bytes = max_request_bytes
        self._address = session.address
        self._sets_acl = sets_acl
        self._loop = asyncio.get_running_loop()
        self._watches: set[_PendingWatch] = set()
        self._listeners: list[Callable[[], None]] = []
        self._has_unknown_outcome = False
        session.on_connected(self._connected)

    @classmethod
    async def connect(
        cls,
        address: ZooKeeperAddress,
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
        limits: RequestLimits,
        security: ZooKeeperSecurity = UNPROTECTED,
    ) -> Self:
        """Open a session and create the cluster's root path.

        Raises StoreUnavailableError without a connection in time.
        """
        session = ZooKeeperSession(address, session_timeout_ms, limits.in_flight, security)
        store = cls(session, limits.request_bytes, sets_acl=security.sets_acl)
        try:
            await session.start(connection_timeout_ms)
        except TimeoutError:
            reason = f"{UNREACHABLE} at {address} within {connection_timeout_ms} ms"
            why = f": {session.last_failure}" if session.last_failure else ""
            raise StoreUnavailableError("/", reason + why) from None
        try:
            await Patience(store, connection_timeout_ms).do(store._create_root)
        except BaseException:
            await store.close()
            raise
        return store

    async def _create_root(self) -> None:
        for step in self._address.root_steps():
            with suppress(NodeExistsError):
                acl = acl_of(step, sets_acl=self._sets_acl)
                await self._ask("/", wire.Create(step, None, acl, 0))

    @property
    def session_id(self) -> int:
        """Owner of the ephemeral nodes that this client makes."""
        return self._session.session_id

    @property
    def newest_transaction(self) -> int:
        """Number of the newest transaction that this client has seen."""
        return self._session.newest_transaction

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the session is new or an outcome is unknown."""
        self._listeners.append(listener)

    @property
    def is_reachable(self) -> bool:
        """True if there is a connection."""
        return self._session.is_connected

    async def wait_until_reachable(self) -> None:
        """Return once there is a connection."""
        await self._session.wait_until_connected()
        self._require_session()

    # Reads

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """Read a node and watch its data."""
        pending = self._pending(path, watch)
        request = wire.GetData(self._address.full(path), pending)
        try:
            data, stat = await self._ask(path, request, is_write=False)
        except StoreError:
            self._drop(pending)
            raise
        return znode(data, stat)

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read many nodes in one flight; None where there is none."""
        requests = [wire.GetData(self._address.full(path), None) for path in paths]
        nodes: list[Znode | None] = []
        for path, answer in zip(paths, await self._ask_all(requests), strict=True):
            if isinstance(answer, KazooNoNodeError):
                nodes.append(None)
            elif isinstance(answer, BaseException):
                raise store_error(path, answer, is_write=False) from answer
            else:
                nodes.append(znode(*answer))
        return nodes

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        """Read a node that may be absent; the watch also sees its creation."""
        while True:
            try:
                return await self.get(path, watch)
            except NoNodeError:
                pass
            pending = self._pending(path, watch)
            request = wire.Exists(self._address.full(path), pending)
            try:
                stat = await self._ask(path, request, is_write=False)
            except StoreError:
                self._drop(pending)
                raise
            if stat is None:
                return None
            self._drop(pending)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Read the sorted names below a node."""
        pending = self._pending(path, watch)
        request = wire.GetChildren(self._address.full(path), pending)
        try:
            return sorted(await self._ask(path, request, is_write=False))
        except StoreError:
            self._drop(pending)
            raise

    # Writes

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Do independent transactions in order, many at a time.

        ZooKeeper closes the connection at a request that is too large, with all others in flight:
        such a one is not sent.
        """
        refusals = [self._refusal(operations) for operations in transactions]
        if not any(refusals):
            return await self._do(transactions)
        pairs = zip(transactions, refusals, strict=True)
        done = iter(await self._do([each for each, refusal in pairs if refusal is None]))
        return [next(done) if refusal is None else refusal for refusal in refusals]

    def _refusal(self, operations: Sequence[Operation]) -> StoreError | None:
        size = size_in_bytes(operations)
        if size <= self._max_request_bytes:
            return None
        largest = max(operations, key=lambda operation: size_in_bytes([operation]))
        reason = (
            f"{size} bytes are more than ZooKeeper takes "
            f"(zookeeper.request.max.bytes={self._max_request_bytes})"
        )
        return TooLargeError(largest.path, reason)

    async def _do(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        batches = gather(transactions)
        answers = await self._ask_all([self._request(batch.operations) for batch in batches])
        outcomes: list[list[Result] | StoreError] = []
        for batch, answer in zip(batches, answers, strict=True):
            outcomes += await self._batch_outcomes(batch, answer)
        return outcomes

    def _request(self, operations: Sequence[Operation]) -> Any:  # noqa: ANN401
        return transaction_request(operations, self._address, sets_acl=self._sets_acl)

    async def close(self) -> None:
        """Close the session: its ephemeral nodes are removed."""
        self._watches.clear()
        await self._session.close()

    async def _batch_outcomes(
        self, batch: Batch, answer: object
    ) -> list[list[Result] | StoreError]:
        whole = self._outcome(batch.operations, answer)
        if not isinstance(whole, StoreError):
            return [*batch.split(whole)]
        is_about_all = isinstance(answer, BaseException) or (batch.check and not whole.operation)
        if is_about_all or len(batch.transactions) == 1:
            return [whole for _ in batch.transactions]
        answers = await self._ask_all([self._request(each) for each in batch.transactions])
        return [
            self._outcome(operations, answer)
            for operations, answer in zip(batch.transactions, answers, strict=True)
        ]

    def _outcome(
        self, operations: Sequence[Operation], answer: object
    ) -> list[Result] | StoreError:
        if isinstance(answer, BaseException):
            error = store_error(operations[0].path if operations else "/", answer)
            if isinstance(error, OutcomeUnknownError):
                self._note_unknown_outcome()
            return error
        try:
            return transaction_results(operations, answer, self._address)
        except StoreError as error:
            return error

    # Asking

    async def _ask(self, path: str, request: object, *, is_write: bool = True) -> Any:  # noqa: ANN401
        answer = (await self._ask_all([request]))[0]
        if isinstance(answer, BaseException):
            raise store_error(path, answer, is_write=is_write) from answer
        return answer

    async def _ask_all(self, requests: Sequence[object]) -> list[Any]:
        """Send all in order; returns answers and exceptions in that order."""
        answers: list[Any] = []
        while all(isinstance(answer, NotConnectedError) for answer in answers):
            await self._require_connection()
            answers = await asyncio.gather(
                *(self._session.send(request) for request in requests), return_exceptions=True
            )
            if not answers:
                break
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(
                answer, KazooException | NotConnectedError
            ):
                raise answer
        return answers

    async def _require_connection(self) -> None:
        self._require_session()
        if self._session.is_connected:
            return
        broken_ms = (self._loop.time() - (self._session.broke_at or 0.0)) * 1000
        left_ms = max(0.0, RECONNECT_GRACE_MS - broken_ms)
        try:
            async with asyncio.timeout(left_ms / 1000):
                await self._session.wait_until_connected()
        except TimeoutError:
            raise StoreUnavailableError("/", UNREACHABLE) from None
        self._require_session()

    def _require_session(self) -> None:
        if self._session.is_closed:
            raise SessionExpiredError("/", "the session is closed")

    # Interruptions and watches

    def _connected(self, is_new_session: bool) -> None:
        if is_new_session or self._has_unknown_outcome:
            self._interrupt()
        watches, self._watches = self._watches, set()
        for pending in watches:  # each by itself: an error of one does not affect the others
            self._loop.call_soon(pending.fire, Change(ChangeKind.SESSION, pending.path))

    def _note_unknown_outcome(self) -> None:
        """Call the listeners at the next connection, or now if there is one."""
        self._has_unknown_outcome = True
        if self._session.is_connected:
            self._interrupt()

    def _interrupt(self) -> None:
        self._has_unknown_outcome = False
        for listener in self._listeners:
            try:
                listener()
            except Exception:
                logger.exception("a listener to interruptions of ZooKeeper failed")

    def _pending(self, path: str, watch: Watch | None) -> _PendingWatch | None:
        if watch is None:
            return None
        pending = _PendingWatch(path, watch, self)
        self._watches.add(pending)
        return pending

    def _drop(self, pending: _PendingWatch | None) -> None:
        if pending is not None:
            self._watches.discard(pending)

    def hear(self, pending: _PendingWatch, kind: str) -> None:
        """Pass an event to its watch, unless that was called or dropped; from any thread."""
        if kind in _KINDS:
            change = Change(_KINDS[kind], pending.path)
            self._session.post(self._fire, pending, change)

    def _fire(self, pending: _PendingWatch, change: Change) -> None:
        if pending in self._watches:
            self._watches.discard(pending)
            pending.fire(change)


class _PendingWatch:
    """One watch that was not called yet; kazoo calls it on one of its threads."""

    def __init__(self, path: str, watch: Watch, store: ZooKeeperStore) -> None:
        self.path = path
        self.fire = watch
        self._store = store

    def __call__(self, event: Any) -> None:  # noqa: ANN401
        self._store.hear(self, event.type)
