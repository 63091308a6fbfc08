"""The client at the other end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.listeners.addresses import counted_address, join_address, peer_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.connection import Connection
    from broker.network.connection_quotas import ConnectionQuotas

ANONYMOUS = "User:ANONYMOUS"


class Client:
    """A client's address, listener and principal, and the quota that counts its connection."""

    __slots__ = (
        *("_connections", "_counted_host", "_idle_since_ms", "_leaving", "_limits"),
        *("address", "host", "is_active", "is_authenticating", "listener", "principal", "software"),
    )

    def __init__(
        self,
        listener: str,
        connections: dict[Connection, None],
        limits: ConnectionQuotas | None = None,
    ) -> None:
        self.listener = listener
        self.principal = ANONYMOUS
        self.host = "/"
        """Its address as Java writes it, after a slash."""
        self.address = "unknown peer"
        self._counted_host = ""
        self.software: tuple[str, str] | None = None
        """Software name and version, if the client has sent them (KIP-511)."""
        self.is_active = True
        """Set by each request, which so needs no clock; cleared by `idle_ms`."""
        self.is_authenticating = False
        """True if its request is part of a log-in."""
        self._idle_since_ms = 0
        self._connections = connections
        self._limits = limits
        self._leaving: tuple[Callable[[], None], ...] = ()

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once the connection is lost; it may raise nothing."""
        self._leaving = (*self._leaving, callback)

    def connected(self, connection: Connection, address: object) -> str | None:
        """Note the accepted socket; returns the reason to close it, or None.

        `address` is (host, port, …), as the transport has it.
        """
        if isinstance(address, tuple):
            host = peer_address(address)
            self.host = f"/{host}"
            self.address = join_address(host, address[1])
            self._counted_host = counted_address(host)
        if self._limits is not None:
            refusal = self._limits.admit(self._counted_host)
            if refusal is not None:
                return refusal
            pause_ms = self._limits.throttle_ms(self._counted_host)
            if pause_ms:
                connection.end_in(pause_ms)
        self._connections[connection] = None
        return None

    def idle_ms(self, now_ms: int) -> int:
        """Milliseconds without a request, to the precision of how often this is called.

        `now_ms` is monotonic: a wall clock set forward would make all connections idle.
        """
        if self.is_active:
            self.is_active = False
            self._idle_since_ms = now_ms
        return now_ms - self._idle_since_ms

    def disconnected(self, connection: Connection) -> None:
        """Release the connection's place in the quota, and call the callbacks."""
        if connection in self._connections:
            del self._connections[connection]
            if self._limits is not None:
                self._limits.release(self._counted_host)
        leaving, self._leaving = self._leaving, ()
        for callback in leaving:
            callback()
