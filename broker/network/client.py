"""Who is at the other end of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.network.connection_quotas import ConnectionQuotas

ANONYMOUS = "User:ANONYMOUS"


class Client:
    """One client's address, listener and identity, and where its connection is counted."""

    __slots__ = (
        *("_connections", "_idle_since_ms", "_limits"),
        *("address", "host", "is_active", "listener", "principal"),
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
        self.address = "unknown peer"
        self.is_active = True
        """Set by each request, so that it need not read a clock; cleared by whoever looks."""
        self._idle_since_ms = 0
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
        self._connections[connection] = None
        return None

    def idle_ms(self, now_ms: int) -> int:
        """How long nothing came, as far as one who looks now and then can tell.

        `now_ms` is monotonic: a wall clock that is set would make idle ones of all.
        """
        if self.is_active:
            self.is_active = False
            self._idle_since_ms = now_ms
        return now_ms - self._idle_since_ms

    def disconnected(self, connection: Connection) -> None:
        """The socket is gone."""
        if connection in self._connections:
            del self._connections[connection]
            if self._limits is not None:
                self._limits.release(self.host[1:])
