"""The event loop of an embedded broker, on which connections to other brokers can be cut.

It behaves like a network that loses everything: bytes sent meanwhile wait, and arrive once the
network is restored unless the connection has been closed by then; nothing is refused; a new
connection succeeds afterwards, or times out. Both directions of a connection are blocked at the
connecting end.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import selector_events
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from broker.embedded.machine.turned_time import TurnableLoop

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from broker.embedded.machine.turned_time import TurnedTime

LOOK_SECONDS = 0.02
TURNS = 3
"""Of the loop, in which a connection that was accepted becomes one, and in which it ends."""


class EmbeddedLoop(TurnableLoop):
    """Its time can be turned, and its way to certain ports be cut.

    A fork of its process does not run it, and closes its own copies of the sockets at once: else
    no client would hear that a connection was closed, or a port left, while the fork lives.
    """

    def __init__(self, turned: TurnedTime) -> None:
        super().__init__(turned)
        self._servers: WeakSet[asyncio.Server] = WeakSet()
        _loops.add(self)
        self._cut: frozenset[int] = frozenset()
        self._made: WeakSet[_HeldUpTransport] = WeakSet()
        """Connections that were made here, and not accepted."""
        self._all: WeakSet[asyncio.Transport] = WeakSet()

    def cut_off_from(self, ports: set[int]) -> None:
        """Cut connections to those ports; restore all others."""
        self._cut = frozenset(ports)
        for transport in tuple(self._made):
            transport.hold_up(is_held_up=transport.port in self._cut)

    def leave_to_parent(self) -> None:
        """Close inherited sockets in a fork."""
        wrapped: list[Any] = [one for server in tuple(self._servers) for one in server.sockets]
        wrapped += [transport.get_extra_info("socket") for transport in tuple(self._all)]
        for one in wrapped:  # asyncio covers sockets with what cannot close them
            one._sock.close()  # noqa: SLF001

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:  # noqa: ANN401
        """As asyncio's."""
        server = await super().create_server(*arguments, **options)
        self._servers.add(server)
        return server

    async def break_off(self) -> None:
        """Break all connections off, those too that are just being accepted."""
        for _ in range(TURNS):
            for transport in tuple(self._all):
                transport.abort()
            passed = self.create_future()
            self.call_soon(passed.set_result, None)
            await passed

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,  # noqa: ANN401 - as asyncio has it
        port: Any = None,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """As asyncio's, but not before the way is free."""
        while port in self._cut:
            over = self.create_future()
            timer = self.call_later(LOOK_SECONDS, over.set_result, None)
            try:
                await over
            finally:
                timer.cancel()
        return await super().create_connection(protocol_factory, host, port, **options)

    def _make_socket_transport(
        self,
        sock: socket.socket,
        protocol: asyncio.BaseProtocol,
        waiter: asyncio.Future[Any] | None = None,
        *,
        extra: dict[str, Any] | None = None,
        server: Any = None,  # noqa: ANN401
    ) -> asyncio.Transport:
        """Called by asyncio for each connection, made or accepted."""
        if server is not None:
            if not server.is_serving():
                # It was closed since the connection was accepted. asyncio asserts that it was not,
                # and leaves the socket open.
                sock.close()
                raise ConnectionAbortedError
            made: asyncio.Transport = super()._make_socket_transport(  # type: ignore[misc] # internal
                sock, protocol, waiter, extra=extra, server=server
            )
            self._all.add(made)
            return made
        transport = _HeldUpTransport(self, sock, protocol, waiter, extra, server)
        transport.port = sock.getpeername()[1]
        self._made.add(transport)
        self._all.add(transport)
        return transport


_loops: WeakSet[EmbeddedLoop] = WeakSet()


def _leave_to_parent() -> None:
    for loop in tuple(_loops):
        if not loop.is_closed():
            loop.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


class _HeldUpTransport(selector_events._SelectorSocketTransport):  # type: ignore[name-defined,misc] # noqa: SLF001
    """A connection that this broker has opened, which can be blocked."""

    port = 0
    is_held_up = False

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments)
        self._held: list[bytes] = []

    def hold_up(self, *, is_held_up: bool) -> None:
        if is_held_up == self.is_held_up or self.is_closing():
            return
        self.is_held_up = is_held_up
        if is_held_up:
            self.pause_reading()
            return
        held, self._held = self._held, []
        for data in held:
            self.write(data)
        self.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_held_up:
            self._held.append(bytes(data))
        else:
            super().write(data)
