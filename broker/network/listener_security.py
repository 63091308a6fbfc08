"""Security of the connections of one listener: TLS below the protocol, and a gate before it.

                bytes          frames
    socket --> [ TLS ] --> connection --> [ gate ] --> dispatcher

Both are handed in: TLS when the address is bound, the gate once credentials can be looked up. A
listener with SASL and without a gate accepts no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.network.connection_services import Gate
    from broker.security.tls.listener_tls import ListenerTls


class ListenerSecurity(Protocol):
    """Created once for a listener; called for each connection, so its result may change."""

    def protocol(self, connection: Connection, client: Client) -> asyncio.BaseProtocol:
        """Protocol of the socket: the connection, or TLS with the connection above it."""

    def gate(self, client: Client) -> Gate | None:
        """Handler of a connection's frames until its client is authenticated.

        None passes all of them to the dispatcher. On success, a gate notes the client's principal
        and calls `Connection.admit`.
        """


class Unprotected:
    """PLAINTEXT: everybody is welcome, and is `User:ANONYMOUS`."""

    def protocol(self, connection: Connection, client: Client) -> asyncio.BaseProtocol:  # noqa: ARG002
        """The connection reads from the socket itself."""
        return connection

    def gate(self, client: Client) -> None:
        """No gate."""


UNPROTECTED = Unprotected()


class Closed:
    """The gate of a listener whose clients cannot be authenticated (yet): it refuses all."""

    max_frame_bytes = 0

    def dispatch(self, frame: memoryview, peer: Client, connection: Connection) -> None:  # noqa: ARG002
        """Hang up."""
        connection.close(f"nobody can be authenticated on {peer.listener}: it has no SASL")


CLOSED = Closed()


class EndpointSecurity:
    """The security of a configured listener, as far as it is known."""

    def __init__(self, security_protocol: str, tls: ListenerTls | None = None) -> None:
        """`security_protocol` is one of `config.listeners.endpoints.SECURITY_PROTOCOLS`."""
        self.has_sasl = security_protocol.startswith("SASL_")
        self._tls = tls
        self.gate_of: Callable[[Client], Gate | None] = _closed if self.has_sasl else _open
        """Replaced for listeners with SASL, before any client is served."""

    def protocol(self, connection: Connection, client: Client) -> asyncio.BaseProtocol:
        """Protocol of the socket: the connection, or TLS with the connection above it.

        Without SASL, the client's principal is that of its certificate, if it has one.
        """
        if self._tls is None:
            return connection

        def recognised(principal: str) -> None:
            if not self.has_sasl:
                client.principal = principal

        return self._tls.transport(connection, recognised, connection.close)

    def gate(self, client: Client) -> Gate | None:
        """Handler of a connection's frames until its client is authenticated."""
        return self.gate_of(client)


def _closed(client: Client) -> Gate:  # noqa: ARG001
    return CLOSED


def _open(client: Client) -> None:
    """No gate: the listener has no SASL."""
