"""The listening sockets, one per configured listener, and the connections accepted on them."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING

from broker.connection import Connection
from broker.peer import Peer

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.dispatch import Dispatcher
    from broker.timers import Timers

logger = logging.getLogger(__name__)

IDLE_CHECKS_PER_LIMIT = 10
DRAIN_STEP_MS = 10


class ListenError(Exception):
    """A listener could not be opened; the text says which and why, in one line."""


class Listeners:
    """Accepts connections and closes those that have been idle for too long."""

    def __init__(self, dispatcher: Dispatcher, clock: Clock, timers: Timers) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._timers = timers
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()

    async def open(
        self, name: str, host: str | None, port: int, max_request_bytes: int, backlog: int
    ) -> int:
        """Listen; returns the port (drawn by the system when `port` is 0). Raises ListenError."""
        loop = asyncio.get_running_loop()

        def accept() -> Connection:
            peer = Peer(name, self._connections)
            peer.last_active_ms = self._clock.now_ms()
            return Connection(self._dispatcher, peer, max_request_bytes)

        try:
            server = await loop.create_server(accept, host or None, port, backlog=backlog)
        except OSError as error:
            where = f"{host or '*'}:{port}"
            if error.errno == errno.EADDRINUSE:
                raise ListenError(f"listener {name}: {where} is already in use") from None
            raise ListenError(f"listener {name}: cannot listen on {where}: {error}") from error
        self._servers.append(server)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    def expire_idle(self, max_idle_ms: int) -> None:
        """Close connections that sent nothing for `max_idle_ms` (connections.max.idle.ms)."""
        if max_idle_ms < 0:
            return

        def check() -> None:
            limit = self._clock.now_ms() - max_idle_ms
            for connection in [one for one in self._connections if one.is_idle_since(limit)]:
                connection.close()

        self._timers.every(max(max_idle_ms / IDLE_CHECKS_PER_LIMIT, 1), check)

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def close(self) -> None:
        """Stop listening and hang up on everybody."""
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.close()
        for server in self._servers:
            await server.wait_closed()
