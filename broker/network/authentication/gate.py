"""The gate of a SASL listener: it serves a connection's frames until its client is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from broker.network.authentication.counts import AuthenticationCounts
from broker.network.authentication.session_guard import SessionGuard
from broker.runtime.deferred import Deferred
from broker.security.sasl.conversation import Conversation
from broker.security.sasl.reply import Reply, Verdict
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.runtime.timers import Timers
    from broker.security.sasl.conversation import Terms
    from broker.security.sasl.reply import Session
    from protocol.schema import Part

MIN_INTERVAL_MS = 1000
"""Shortest time between two authentications of one client. Fixed, as in Apache Kafka."""
_ERROR_CODE = slice(8, 10)
"""In an answer to ApiVersions: behind its size and the correlation id, in all versions."""


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Settings shared by the gates of a listener."""

    terms: Terms
    timers: Timers
    max_frame_bytes: int
    """`sasl.server.max.receive.size`."""
    refusal_delay_ms: int
    """`connection.failed.authentication.delay.ms`."""
    counts: AuthenticationCounts = field(default_factory=AuthenticationCounts)


class SaslGate:
    """Of one connection."""

    def __init__(self, settings: GateSettings, before: Session | None = None) -> None:
        """`before` is the session of a client that authenticates again."""
        self._settings = settings
        self._before = before
        self._begun_ms = None if before is None else settings.terms.clock.monotonic_ms()
        self._attempts = settings.counts.first if before is None else settings.counts.again
        self._conversation: Conversation | None = None
        self.max_frame_bytes = settings.max_frame_bytes

    def dispatch(
        self, frame: memoryview, peer: Client, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """The answer to a frame, as far as there is one while the client is unknown."""
        if self._conversation is None:
            list_versions = partial(_list_versions, peer=peer, connection=connection)
            self._conversation = Conversation(self._settings.terms, list_versions, self._before)
        reply = self._conversation.receive(frame)
        if not isinstance(reply, Deferred):
            return self._carry_out(reply, peer, connection)
        return reply.map(lambda come: self._carry_out(come, peer, connection))

    def _carry_out(self, reply: Reply, peer: Client, connection: Connection) -> list[Part] | None:
        if reply.verdict in (Verdict.REFUSE, Verdict.HANG_UP):
            self._attempts.failed += 1
        if reply.verdict is Verdict.HANG_UP:
            connection.close(_shown(reply, peer))
            return None
        if reply.verdict is Verdict.REFUSE:
            self._refuse(reply, peer, connection)
            return None
        if reply.session is not None:
            self._admit(reply.session, peer, connection)
        return reply.answer

    def _admit(self, session: Session, peer: Client, connection: Connection) -> None:
        peer.principal = session.principal
        connection.admit()
        self._attempts.succeeded += 1
        if session.expires_at_ms is not None:
            connection.guard(SessionGuard(session, self, connection))
        self._conversation = None

    def again(self, session: Session, now_ms: int) -> SaslGate | None:
        """The gate for a client that authenticates again; None if it did so a moment ago."""
        if self._begun_ms is not None and now_ms - self._begun_ms < MIN_INTERVAL_MS:
            return None
        return SaslGate(self._settings, session)

    def expired(self) -> None:
        """Note that its client did not authenticate again in time."""
        self._settings.counts.expired += 1

    def _refuse(self, reply: Reply, peer: Client, connection: Connection) -> None:
        """Answer and close after a delay, which slows down password guessing (KIP-306)."""
        delay_ms = self._settings.refusal_delay_ms
        connection.rest(delay_ms)
        close = partial(connection.close, _shown(reply, peer), reply.answer)
        self._settings.timers.schedule(delay_ms, close)


def _shown(reply: Reply, peer: Client) -> str:
    return f"failed authentication on {peer.listener}: {reply.reason}"


def _list_versions(
    frame: memoryview, peer: Client, connection: Connection
) -> tuple[list[Part] | None, bool]:
    """Have ApiVersions answered as to anyone; whether the versions are in the answer."""
    peer.is_authenticating = True
    try:
        answer = connection.services.dispatcher.dispatch(frame, peer, connection)
    finally:
        peer.is_authenticating = False
    if isinstance(answer, Deferred):  # only one that is too long to be read at once
        answer.abandon()
        connection.close(f"ApiVersions of {len(frame)} bytes during authentication")
        return None, False
    if answer is None:
        return None, False
    front = answer[0]
    assert isinstance(front, bytes)
    code = int.from_bytes(front[_ERROR_CODE], "big")
    return answer, code == ErrorCode.NONE
