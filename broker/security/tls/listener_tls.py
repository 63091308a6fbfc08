"""TLS of one listener as connections see it: the context there is now, which may be replaced.

A connection that comes in is given the context of that moment; those that are open keep theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.tls.distinguished_names import subject
from broker.security.tls.principal_rules import UnmappedNameError
from broker.security.tls.store_error import StoreFormatError
from broker.security.tls.transport import TlsTransport

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable

    from broker.security.tls.handshakes import Handshakes
    from broker.security.tls.listener_context import ListenerContext


class ListenerTls:
    """Puts TLS below the connections of one listener."""

    def __init__(self, context: ListenerContext, handshakes: Handshakes) -> None:
        self.context = context
        """Replaced when the configuration or a store changes."""
        self._handshakes = handshakes

    def transport(
        self,
        protocol: asyncio.BufferedProtocol,
        recognised: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> TlsTransport:
        """TLS transport for a new connection's socket.

        `recognised` gets the principal in the client's certificate, if it presents one; `failed`
        gets the reason if there is no TLS, and closes the connection.
        """
        context = self.context

        def wrap(incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
            return context.server.wrap_bio(incoming, outgoing, server_side=True)

        handshake = _Handshake(self._handshakes, context, recognised, failed)
        transport = TlsTransport(protocol, wrap, self._handshakes, handshake)
        handshake.begin(transport)
        return transport


class _Handshake:
    """Handshake of one client: ends it, and reports its principal."""

    def __init__(
        self,
        handshakes: Handshakes,
        context: ListenerContext,
        recognised: Callable[[str], None],
        failed: Callable[[str], None],
    ) -> None:
        self._handshakes = handshakes
        self._context = context
        self._recognised = recognised
        self._failed = failed
        self._transport: TlsTransport | None = None

    def begin(self, transport: TlsTransport) -> None:
        self._transport = transport
        self._handshakes.begin(transport)

    def secured(self, certificate: bytes | None) -> str | None:
        self.lost()
        if certificate is not None:
            try:
                self._recognised(self._context.mapping.principal(subject(certificate)))
            except (UnmappedNameError, StoreFormatError) as error:
                return str(error)
        return None

    def failed(self, reason: str) -> None:
        self.lost()
        self._failed(reason)

    def lost(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            self._handshakes.end(transport)
