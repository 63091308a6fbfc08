"""The listening sockets, one per configured listener, and the connections accepted on them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.network.client import Client
from broker.network.connection import Connection
from broker.network.listener_security import UNPROTECTED
from broker.runtime.addresses.listening_socket import listen_on
from config.listeners.addresses import join_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from broker.network.connection_quotas import ConnectionQuotas
    from broker.network.connection_services import ConnectionServices
    from broker.network.listener_security import ListenerSecurity
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint

    ListenOn = Callable[[str, int], Awaitable[Mapping[str, Any]]]

logger = logging.getLogger(__name__)

IDLE_CHECKS_PER_LIMIT = 10
IDLE_CHECK_MS = 60_000
"""Longest interval of checks for idle connections, whose memory is freed after one or two."""
DRAIN_MS = 1000
"""Time that a stopping broker waits for answers to be sent, before it drops the connections.

Fixed: a client that reads receives the rest in far less, and one that does not never would.
"""
DRAIN_CHECK_MS = 10
CLOSED_AT_ONCE = 100
"""Connections of a listener that is removed, between two looks at others. Fixed: it takes a few
milliseconds."""
SYSTEM_BUFFER = -1
"""The configured size that leaves a socket buffer to the system, which adapts it to the traffic."""


class ListenError(Exception):
    """A listener could not be opened; the text names it and the reason, in one line."""

    def __init__(self, text: str, key: str) -> None:
        """`key` is the configuration key that the address stands in."""
        super().__init__(f"{key}: {text}")
        self.key = key


@dataclass(slots=True)
class Door:
    """One bound address, and the connections accepted on it."""

    endpoint: Endpoint
    server: asyncio.Server
    connections: dict[Connection, None]
    """Open connections, in the order of their arrival."""
    is_open: bool = True
    """True if the address is still bound."""

    def shut(self) -> None:
        """Release the address."""
        self.is_open = False
        self.server.close()


class Listeners:
    """Accepts connections and closes those that have been idle for too long."""

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        limits: ConnectionQuotas | None = None,
        listen_on: ListenOn = listen_on,
    ) -> None:
        """`limits` apply to new connections of all listeners."""
        self._listen_on = listen_on
        self._clock = clock
        self._timers = timers
        self.limits = limits
        self._services: ConnectionServices | None = None
        """Passed to each connection; none is accepted before `serve` has set it."""
        self._doors: list[Door] = []
        self.accepted_count = 0
        """Connections accepted so far."""

    async def bind(
        self,
        endpoint: Endpoint,
        config: BrokerConfig,
        security: ListenerSecurity = UNPROTECTED,
    ) -> int:
        """Bind the address; returns the port. Raises ListenError.

        It is served from `serve` on, or at once after that.
        """
        connections: dict[Connection, None] = {}

        def accept() -> asyncio.BaseProtocol:
            assert self._services is not None
            self.accepted_count += 1
            peer = Client(endpoint.name, connections, self.limits)
            connection = Connection(self._services, peer)
            connection.guard(security.gate(peer))
            self._pace(connection)
            return security.protocol(connection, peer)

        with _naming(endpoint):
            server = await self._server(accept, endpoint, config)
            _size_buffers(server, config)
            door = Door(endpoint, server, connections)
            if self._services is not None:
                try:
                    await server.start_serving()
                except OSError:
                    door.shut()
                    raise
            self._doors.append(door)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    async def try_out(self, endpoint: Endpoint, config: BrokerConfig) -> None:
        """Raises ListenError if the address cannot be bound now."""
        with _naming(endpoint):
            server = await self._server(asyncio.Protocol, endpoint, config)
        server.close()

    async def _server(
        self,
        accept: Callable[[], asyncio.BaseProtocol],
        endpoint: Endpoint,
        config: BrokerConfig,
    ) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            accept,
            backlog=config.socket_listen_backlog_size,
            start_serving=False,
            **await self._listen_on(endpoint.host, endpoint.port),
        )

    def _pace(self, connection: Connection) -> None:
        """Delay a connection above `max.connection.creation.rate`."""
        if self.limits is None or self.limits.pace is None:
            return
        wait_ms = self.limits.pace.wait_ms(self._clock.monotonic_ms())
        if wait_ms:
            connection.hold()
            self._timers.schedule(wait_ms, connection.begin)

    async def serve(self, services: ConnectionServices) -> None:
        """Accept connections on all bound addresses. Raises ListenError."""
        self._services = services
        for door in self._doors:
            if door.is_open:
                with _naming(door.endpoint):
                    await door.server.start_serving()

    @property
    def are_served(self) -> bool:
        """True if connections are accepted."""
        return self._services is not None

    def shut(self, listener: str) -> list[Door]:
        """Stop accepting connections on one listener, and release its addresses.

        Returns the doors with the connections, which stay open until `dismiss`.
        """
        doors = [one for one in self._doors if one.endpoint.name == listener and one.is_open]
        for door in doors:
            door.shut()
        return doors

    async def dismiss(self, doors: list[Door]) -> int:
        """Close the connections that came in by these doors; returns how many there were."""
        leaving = [connection for door in doors for connection in door.connections]
        for done, connection in enumerate(leaving, 1):
            connection.close()
            if done % CLOSED_AT_ONCE == 0:
                await self._timers.sleep(0)
        await self._part(doors)
        return len(leaving)

    def look_after_idle(self, max_idle_ms: int) -> None:
        """Free the memory of idle connections, and close those idle for `max_idle_ms`.

        That is `connections.max.idle.ms`; with a negative one none is closed.
        """

        def look() -> None:
            now_ms = self._clock.monotonic_ms()
            for connection in self._connections:
                connection.look_after(now_ms, max_idle_ms)
            self._doors = [one for one in self._doors if one.is_open or one.connections]

        interval_ms = max_idle_ms / IDLE_CHECKS_PER_LIMIT if max_idle_ms >= 0 else IDLE_CHECK_MS
        self._timers.every(min(max(interval_ms, 1), IDLE_CHECK_MS), look)

    def open_connections(self) -> dict[str, int]:
        """Number of open connections, by listener; from any thread."""
        counts: Counter[str] = Counter()
        for door in tuple(self._doors):
            counts[door.endpoint.name] += len(door.connections)
        return dict(counts)

    def unbind(self) -> None:
        """Release the addresses, unless they are released already."""
        for door in self._doors:
            door.shut()

    def break_off(self) -> None:
        """Release the addresses and drop all connections, even with unsent answers."""
        self.unbind()
        for connection in self._connections:
            connection.abort()

    async def close(self) -> None:
        """Stop listening and close all connections.

        Answers that are not sent within `DRAIN_MS` are lost.
        """
        self.unbind()
        for connection in self._connections:
            connection.close()
        await self._part(self._doors)

    @property
    def _connections(self) -> tuple[Connection, ...]:
        """All that are open; by listener, in the order of their arrival."""
        return tuple(one for door in self._doors for one in door.connections)

    async def _part(self, doors: list[Door]) -> None:
        """Wait a while for the answers to be sent, and drop the connections that are left then.

        Not with `Server.wait_closed`: up to Python 3.12.0 it does not wait, and from 3.12.1 on
        without end if a client does not read.
        """
        until_ms = self._clock.monotonic_ms() + DRAIN_MS
        await self._timers.sleep(0)  # which is enough for most of them
        while any(one.connections for one in doors) and self._clock.monotonic_ms() < until_ms:
            await self._timers.sleep(DRAIN_CHECK_MS)
        for door in doors:
            for connection in tuple(door.connections):
                connection.abort()
        await self._timers.sleep(0)  # in which their `connection_lost` is called


def _size_buffers(server: asyncio.Server, config: BrokerConfig) -> None:
    """Size the listening sockets' buffers, which accepted ones inherit, window scaling too."""
    sizes = (
        (socket.SO_SNDBUF, config.socket_send_buffer_bytes),
        (socket.SO_RCVBUF, config.socket_receive_buffer_bytes),
    )
    for listening in server.sockets:
        for option, size in sizes:
            if size != SYSTEM_BUFFER:
                listening.setsockopt(socket.SOL_SOCKET, option, size)


@contextlib.contextmanager
def _naming(endpoint: Endpoint) -> Iterator[None]:
    """Name the listener in an error."""
    where = join_address(endpoint.host or "*", endpoint.port)
    try:
        yield
    except OSError as error:
        raise ListenError(
            f"listener {endpoint.name}: {why_not_bound(error, endpoint.host, where)}", "listeners"
        ) from None


def why_not_bound(error: OSError, host: str, where: str) -> str:
    """The reason why an address cannot be bound, without the system's error numbers."""
    if error.errno == errno.EADDRINUSE:
        return f"{where} is already in use"
    if isinstance(error, socket.gaierror):
        reason = f"no address is known for {host}"
    elif error.errno is None:
        reason = str(error)
    else:
        reason = os.strerror(error.errno).lower()
    return f"cannot listen on {where}: {reason}"
