"""Who is at the other end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.connection import Connection

ANONYMOUS = "User:ANONYMOUS"


class Peer:
    """One client's address, listener and identity, and the set that counts its connection."""

    __slots__ = ("_connections", "address", "host", "last_active_ms", "listener", "principal")

    def __init__(self, listener: str, connections: set[Connection]) -> None:
        self.listener = listener
        self.principal = ANONYMOUS
        self.host = "/"
        self.address = "unknown peer"
        self.last_active_ms = 0
        self._connections = connections

    def connected(self, connection: Connection, address: object) -> None:
        """The socket was accepted. `address` is (host, port, …)."""
        if isinstance(address, tuple):
            self.host = f"/{address[0]}"
            self.address = f"{address[0]}:{address[1]}"
        self._connections.add(connection)

    def disconnected(self, connection: Connection) -> None:
        """The socket is gone."""
        self._connections.discard(connection)
