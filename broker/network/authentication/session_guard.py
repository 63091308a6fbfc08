"""A session that ends: its client has to authenticate again before (KIP-368).

Only such connections pay for looking at each request; others go straight to the dispatcher.
"""

from __future__ import annotations

import struct as structs
from typing import TYPE_CHECKING, Protocol

from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.network.connection_services import Gate
    from broker.runtime.deferred import Deferred
    from broker.security.sasl.reply import Session
    from protocol.schema import Part

_API_KEY = structs.Struct(">h").unpack_from
_KEY_BYTES = 2


class Entrance(Protocol):
    """The gate by which the client came in."""

    def again(self, session: Session, now_ms: int) -> Gate | None:
        """The gate for a client that authenticates again; None if it did so a moment ago."""

    def expired(self) -> None:
        """Note that its client did not authenticate again in time."""


class SessionGuard:
    """Passes requests on until the session ends, and lets the client begin another."""

    def __init__(self, session: Session, entrance: Entrance, connection: Connection) -> None:
        assert session.expires_at_ms is not None
        self._session = session
        self._expires_at_ms = session.expires_at_ms
        self._entrance = entrance
        services = connection.services
        self._pass_on = services.dispatcher.dispatch
        self._now_ms = services.clock.monotonic_ms
        self.max_frame_bytes = services.max_request_bytes

    def dispatch(
        self, frame: memoryview, peer: Client, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve a request; the connection ends with the first one after the session."""
        now_ms = self._now_ms()
        if len(frame) >= _KEY_BYTES and _API_KEY(frame)[0] == ApiKey.SASL_HANDSHAKE:
            gate = self._entrance.again(self._session, now_ms)
            if gate is not None:
                connection.guard(gate)
                return gate.dispatch(frame, peer, connection)
        if now_ms > self._expires_at_ms:
            self._entrance.expired()
            connection.close(f"session of {self._session.principal} expired")
            return None
        return self._pass_on(frame, peer, connection)
