"""A session with ZooKeeper on the event loop; kazoo's threads end here.

kazoo runs three threads: one owns the connection and reads the answers, one delivers watch events,
one is not used. They only post to the loop. Changes to kazoo are in `kazoo_client`.

A request in flight when the connection broke may or may not have been carried out; this is settled
once the session is connected again, because ZooKeeper closes the old connection of a session before
it accepts the new one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.states import KazooState

from config.listeners.addresses import join_address
from controller.zookeeper.kazoo_client import GatedClient, NotConnectedError
from controller.zookeeper.security import UNPROTECTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.zookeeper.address import ZooKeeperAddress
    from controller.zookeeper.security import ZooKeeperSecurity

WAITING_LIMIT = 200_000
"""Requests that may wait. Fixed: as many as the partition states of the largest clusters."""

CLOSE_SECONDS = 3.0
"""Longest wait for the end of the session, which ZooKeeper otherwise expires."""

logger = logging.getLogger(__name__)


class _Answer:
    """Receives ZooKeeper's answer from kazoo.

    It stands for kazoo's `AsyncResult`, which costs a lock and a turn of a thread.
    """

    __slots__ = ("_error", "_future", "_session", "_value", "is_noted")

    def __init__(self, future: asyncio.Future[Any], session: ZooKeeperSession) -> None:
        self._future = future
        self._session = session
        self.is_noted = False
        """True once `ZooKeeperSession.note` has accepted it: kazoo may fail a request twice."""
        self._value: object = None
        self._error: BaseException | None = None

    def set(self, value: object = None) -> None:
        """Receive the answer."""
        self._value = value
        self._session.note(self)

    def set_exception(self, error: BaseException) -> None:
        """Receive the error."""
        self._error = error
        self._session.note(self)

    def settle(self) -> None:
        """Complete the waiting future, on the loop."""
        if self._future.done():
            return
        if self._error is None:
            self._future.set_result(self._value)
        else:
            self._future.set_exception(self._error)


class ZooKeeperSession:
    """Sends requests of kazoo's protocol, a bounded number at a time, in order."""

    def __init__(
        self,
        address: ZooKeeperAddress,
        session_timeout_ms: int,
        max_in_flight: int,
        security: ZooKeeperSecurity = UNPROTECTED,
    ) -> None:
        """Prepare; `start` connects. Call it on the event loop."""
        self.address = address
        self._max_in_flight = max_in_flight
        self._loop = asyncio.get_running_loop()
        self._client = GatedClient(
            hosts=",".join(join_address(host, port) for host, port in address.servers),
            timeout=session_timeout_ms / 1000,
            security=security,
        )
        self._in_flight = 0
        self._waiting: deque[tuple[object, asyncio.Future[Any]]] = deque()
        self._answered: list[_Answer] = []
        self._answered_lock = threading.Lock()
        self._connected = asyncio.Event()
        self._on_connected: Callable[[bool], None] = _ignore
        self._is_closed = False
        self.broke_at: float | None = None
        """Loop time at which the connection was lost; None while there is one."""

        self.session_id = 0
        """The session as last connected; 0 before the first time."""

    @property
    def is_connected(self) -> bool:
        """True if a request made now would be sent."""
        return self._connected.is_set() and self._client.connected and not self._is_closed

    @property
    def last_failure(self) -> str:
        """Reason of the last failure of TLS or SASL; empty when neither failed."""
        return self._client.last_failure

    @property
    def is_closed(self) -> bool:
        """True if the session was closed on this side."""
        return self._is_closed

    def on_connected(self, listener: Callable[[bool], None]) -> None:
        """Call `listener(is_new_session)` after each reconnection."""
        self._on_connected = listener

    async def start(self, timeout_ms: int) -> None:
        """Connect. Raises TimeoutError; then the session is closed."""
        self._client.add_listener(self._note_state)
        self._client.start_async()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.wait_until_connected()
        except (TimeoutError, asyncio.CancelledError):
            await self.close()
            raise

    async def wait_until_connected(self) -> None:
        """Return once there is a connection, or the session is closed."""
        await self._connected.wait()

    def send(self, request: object) -> asyncio.Future[Any]:
        """Send a request in its turn; the future gets kazoo's answer or exception."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self.is_connected or len(self._waiting) >= WAITING_LIMIT:
            future.set_exception(NotConnectedError())
        elif self._in_flight < self._max_in_flight:
            self._submit(request, future)
        else:
            self._waiting.append((request, future))
        return future

    async def close(self) -> None:
        """Close the session, so that its ephemeral nodes are removed at once."""
        if self._is_closed:
            return
        self._is_closed = True
        self._connected.set()  # callers waiting for a connection see that there will be none
        ended = asyncio.Event()

        def stop() -> None:
            self._client.stop()
            self._client.close()
            self.post(ended.set)

        # A thread of its own: stopping waits for a server that may not answer, and must then not
        # hold up the end of the process.
        threading.Thread(target=stop, name="zookeeper-close", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await ended.wait()

    # On the event loop

    def _submit(self, request: object, future: asyncio.Future[Any]) -> None:
        self._in_flight += 1
        answer = _Answer(future, self)
        try:
            self._client.submit(request, answer)
        except Exception as error:  # noqa: BLE001 - given to whoever waits for the answer
            answer.set_exception(error)

    def _settle_answered(self) -> None:
        with self._answered_lock:
            answered, self._answered = self._answered, []
        for answer in answered:
            self._in_flight -= 1
            answer.settle()
        while self._waiting and self._in_flight < self._max_in_flight:
            request, waiting = self._waiting.popleft()
            if waiting.done():
                continue  # the caller was cancelled
            if self.is_connected:
                self._submit(request, waiting)
            else:
                waiting.set_exception(NotConnectedError())

    def _connection_stands(self, session_id: int) -> None:
        if self._is_closed:
            return
        is_new = session_id != self.session_id
        if self.session_id:
            what = "a new session" if is_new else "the same session"
            logger.warning("ZooKeeper reconnected, in %s", what)
        self.session_id = session_id
        self.broke_at = None
        self._connected.set()
        self._on_connected(is_new)

    def _connection_broke(self, *, is_expired: bool) -> None:
        if self._is_closed:
            return
        self._connected.clear()
        self.broke_at = self.broke_at or self._loop.time()
        if is_expired:
            logger.error("ZooKeeper session expired")
        else:
            logger.warning("ZooKeeper connection lost: %s", self.address)

    # On kazoo's threads

    def note(self, answer: _Answer) -> None:
        """Deliver an answer on the loop, with all others that arrive before the loop runs.

        Two threads may do so at once, kazoo's and the loop's, whose request finds no connection.
        Without the lock each could assume that the other has called the loop, and no request of the
        session would ever be answered again.
        """
        with self._answered_lock:
            if answer.is_noted:
                return
            answer.is_noted = True
            is_first = not self._answered  # otherwise the previous one has called the loop
            self._answered.append(answer)
        if is_first:
            self.post(self._settle_answered)

    def _note_state(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self.post(self._connection_stands, self._client.client_id[0])
        else:
            expired = state == KazooState.LOST
            self.post(lambda: self._connection_broke(is_expired=expired))

    @property
    def newest_transaction(self) -> int:
        """Number of the newest transaction in ZooKeeper's answers."""
        return int(self._client.last_zxid)

    def post(self, work: Callable[..., None], *arguments: object) -> None:
        """Run work on the loop, from any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(work, *arguments)


def was_lost(error: BaseException) -> bool:
    """Return whether the connection broke during the request."""
    return isinstance(error, ConnectionLoss)


def _ignore(_: bool) -> None:
    """Stand in for a listener until there is one."""
