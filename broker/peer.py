"""Who is at the other end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.connection import Connection
    from broker.connection_limits import ConnectionLimits

ANONYMOUS = "User:ANONYMOUS"


class Peer:
    """One client's address, listener and identity, and where its connection is counted."""

    __slots__ = (
        *("_connections", "_limits"),
        *("address", "host", "last_active_ms", "listener", "principal"),
    )

    def __init__(
        self,
        listener: str,
        connections: set[Connection],
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.listener = listener
        self.principal = ANONYMOUS
        self.host = "/"
        self.address = "unknown peer"
        self.last_active_ms = 0
        self._connections = connections
        self._limits = limits

    def connected(self, connection: Connection, address: object) -> str | None:
        """The socket was accepted; returns why it may not stay. `address` is (host, port, …)."""
        if isinstance(address, tuple):
            self.host = f"/{address[0]}"
            self.address = f"{address[0]}:{address[1]}"
        if self._limits is not None:
            refusal = self._limits.admit(self.host[1:])
            if refusal is not None:
                return refusal
        self._connections.add(connection)
        return None

    def disconnected(self, connection: Connection) -> None:
        """The socket is gone."""
        if connection in self._connections:
            self._connections.discard(connection)
            if self._limits is not None:
                self._limits.release(self.host[1:])
