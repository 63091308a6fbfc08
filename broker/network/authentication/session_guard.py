"""A session that ends: its client has to authenticate again before (KIP-368).

Only such connections pay for looking at each request; others go straight to the dispatcher.
"""

from __future__ import annotations

import struct as structs
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.network.connection_services import Gate
    from broker.runtime.deferred import Deferred
    from broker.security.sasl.reply import Session
    from protocol.schema import Part

MIN_INTERVAL_MS = 1000
"""Shortest time between two authentications of one client. Fixed, as in Apache Kafka."""

_API_KEY = structs.Struct(">h").unpack_from
_KEY_BYTES = 2


class SessionGuard:
    """Passes requests on until the session ends, and lets the client begin another."""

    def __init__(
        self,
        session: Session,
        again: Callable[[Session], Gate],
        connection: Connection,
        begun_ms: int | None,
    ) -> None:
        """`begun_ms` is when it last authenticated again; `again` makes the gate for that."""
        assert session.expires_at_ms is not None
        self._session = session
        self._expires_at_ms = session.expires_at_ms
        self._again = again
        self._begun_ms = begun_ms
        services = connection.services
        self._pass_on = services.dispatcher.dispatch
        self._now_ms = services.clock.monotonic_ms
        self.max_frame_bytes = services.max_request_bytes

    def dispatch(
        self, frame: memoryview, peer: Client, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve a request; the connection ends with the first one after the session."""
        now_ms = self._now_ms()
        if self._may_begin(frame, now_ms):
            gate = self._again(self._session)
            connection.guard(gate)
            return gate.dispatch(frame, peer, connection)
        if now_ms > self._expires_at_ms:
            connection.close(f"session of {self._session.principal} expired")
            return None
        return self._pass_on(frame, peer, connection)

    def _may_begin(self, frame: memoryview, now_ms: int) -> bool:
        """Whether it authenticates again. One that comes too soon is answered as a request."""
        if len(frame) < _KEY_BYTES or _API_KEY(frame)[0] != ApiKey.SASL_HANDSHAKE:
            return False
        return self._begun_ms is None or now_ms - self._begun_ms >= MIN_INTERVAL_MS
