"""What protects the connections of one listener: TLS below the protocol, and a gate before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl

    from broker.network.client import Client
    from broker.network.connection_services import FrameDispatcher


class ListenerSecurity(Protocol):
    """Made once for a listener; asked anew for each connection, so what it says may change."""

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The context of the next TLS handshake; None on a listener without TLS."""

    def gate(self, client: Client) -> FrameDispatcher | None:
        """Who is given the frames of a connection until its client is authenticated.

        None lets all of them through to the dispatcher. A gate that is content notes the client's
        principal and calls `Connection.admit`.
        """


class Unprotected:
    """PLAINTEXT: everybody is welcome, and is `User:ANONYMOUS`."""

    tls = None

    def gate(self, client: Client) -> None:
        """Nobody stands at it."""


UNPROTECTED = Unprotected()
