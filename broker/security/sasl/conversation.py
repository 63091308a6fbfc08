"""One authentication, from the client's first frame until it is admitted or refused.

    ApiVersions    answered by the dispatcher, as to anyone
    SaslHandshake  chooses the mechanism; v0 has bare tokens follow, v1 SaslAuthenticate
    a token        goes to the mechanism's exchange

Any other request is answered where Apache Kafka answers it, while tokens are awaited: with
ILLEGAL_SASL_STATE for all that it names, before the connection ends. `states.py` has the order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from broker.runtime.deferred import Deferred
from broker.security.sasl import reply
from broker.security.sasl.error_answers import NoPlaceError, error_answer
from broker.security.sasl.lifetime import lifetime_ms
from broker.security.sasl.mechanism import Authenticated, InvalidCredentialsError, RefusedError
from broker.security.sasl.reply import Reply, Session, Verdict
from broker.security.sasl.states import HANDSHAKE_REQUESTS, TRANSITIONS, Event, State
from protocol.api_keys import ApiKey
from protocol.errors import ApiError, ErrorCode
from protocol.headers import RequestHeader, parse_request_header
from protocol.messages.produce import ProduceRequest
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from protocol.schema import UNDECODABLE, UNENCODABLE
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.runtime.clock import Clock
    from broker.security.sasl.mechanism import Exchange, Mechanism, Step
    from protocol.schema import Part, Request

R = TypeVar("R", bound="Request")
GSSAPI = "GSSAPI"
FIRST_HANDSHAKE_WITH_HEADERS = 1

MAX_REFUSED_BYTES = 32_768
"""Largest request that is decoded to be refused with an answer, in one go; larger ones get none.
Fixed: clients that get the order of an authentication wrong name few topics.
"""


class _UnreadableError(Exception):
    """A request that cannot be decoded; the text says why."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A listener's terms of authentication."""

    mechanisms: Mapping[str, Mechanism]
    """Enabled mechanisms, by name."""
    max_reauth_ms: Mapping[str, int]
    """`connections.max.reauth.ms` of each."""
    clock: Clock
    requests: Mapping[int, type[Request]] = field(default_factory=dict)
    """Requests that are refused with an answer, by API key; any other ends the connection."""


class Conversation:
    """The server's side of one authentication."""

    def __init__(
        self,
        terms: Terms,
        list_versions: Callable[[memoryview], tuple[list[Part] | None, bool]],
        before: Session | None = None,
    ) -> None:
        """`before` is the session of a client that authenticates again.

        `list_versions` answers an ApiVersions request, and says whether with the versions.
        """
        self._terms = terms
        self._list_versions = list_versions
        self._before = before
        self._mechanism: Mechanism | None = None if before is None else before.mechanism
        self._exchange: Exchange | None = None
        self._has_headers = False
        self.state = State.INITIAL if before is None else State.AGAIN

    def receive(self, frame: memoryview) -> Reply | Deferred[Reply]:
        """Take a frame, without its size. Behind one that was refused, all are ignored."""
        try:
            return self._take(frame)
        except _UnreadableError as error:
            return self._hang_up(str(error))

    def _take(self, frame: memoryview) -> Reply | Deferred[Reply]:
        if self.state is State.TOKENS:
            return self._take_token_frame(frame)
        if self.state in (State.MECHANISM_CHANGED, State.FAILED):
            return self._end()
        header, position, reason = _read_header(frame)
        if header is None:
            return self._take_foreign(frame, reason)
        if header.api_key not in HANDSHAKE_REQUESTS[self.state]:
            return self._reject_request(header, frame, position)
        if header.api_key == ApiKey.API_VERSIONS:
            return self._take_api_versions(frame)
        return self._take_handshake(header, frame, position)

    def _end(self) -> Reply:
        if self.state is State.FAILED:
            return Reply(Verdict.GO_ON)
        return self._refuse("another SASL mechanism than at first is not supported")

    def _take_api_versions(self, frame: memoryview) -> Reply:
        answer, is_listed = self._list_versions(frame)
        self._go(Event.VERSIONS_LISTED if is_listed else Event.VERSIONS_REFUSED)
        return Reply(Verdict.GO_ON, answer)

    def _take_handshake(self, header: RequestHeader, frame: memoryview, position: int) -> Reply:
        request = _decoded(SaslHandshakeRequest, header, frame, position)
        self._has_headers = header.api_version >= FIRST_HANDSHAKE_WITH_HEADERS
        offered = list(self._terms.mechanisms)
        if request.mechanism not in self._terms.mechanisms:
            reason = f"SASL mechanism {_shown(request.mechanism)} is not among {', '.join(offered)}"
            if self._before is not None:
                return self._hang_up(reason)  # unanswered, as by Apache Kafka
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answer = SaslHandshakeResponse(error_code=code, mechanisms=offered)
            return self._refuse(reason, reply.framed(header, answer))
        self._choose(request.mechanism)
        answer = SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=offered)
        return Reply(Verdict.GO_ON, reply.framed(header, answer))

    def _choose(self, name: str) -> None:
        if self._before is not None and name != self._before.mechanism.name:
            self._go(Event.ANOTHER_MECHANISM)
            return
        self._mechanism = self._terms.mechanisms[name]
        self._exchange = self._mechanism.exchange()
        self._go(Event.MECHANISM_CHOSEN)

    def _take_foreign(self, frame: memoryview, reason: str) -> Reply | Deferred[Reply]:
        """A frame without a Kafka header: with GSSAPI, the first token of a client of Kafka 0.9."""
        if self.state is not State.INITIAL:
            return self._hang_up(reason)
        if GSSAPI not in self._terms.mechanisms:
            return self._refuse(f"the first frame is no Kafka request: {reason}")
        self._choose(GSSAPI)
        return self._take_token(None, bytes(frame))

    def _take_token_frame(self, frame: memoryview) -> Reply | Deferred[Reply]:
        if not self._has_headers:
            return self._take_token(None, bytes(frame))
        header, position, reason = _read_header(frame)
        if header is None:
            return self._hang_up(reason)
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            return self._reject_request(header, frame, position)
        request = _decoded(SaslAuthenticateRequest, header, frame, position)
        return self._take_token(header, request.auth_bytes)

    def _take_token(self, header: RequestHeader | None, token: bytes) -> Reply | Deferred[Reply]:
        """Pass a token to the mechanism; `header` is that of its request, if it came in one."""
        assert self._exchange is not None
        try:
            step = self._exchange.respond(token)
        except (InvalidCredentialsError, RefusedError) as error:
            return self._fail(header, error)
        if not isinstance(step, Deferred):
            return self._advance(header, step)
        return self._later(header, step)

    def _later(self, header: RequestHeader | None, coming: Deferred[Step]) -> Deferred[Reply]:
        replied: Deferred[Reply] = Deferred(on_abandon=coming.abandon)

        def failed(error: Exception) -> None:
            if isinstance(error, InvalidCredentialsError | RefusedError):
                replied.complete(self._fail(header, error))
            else:
                self.state = State.FAILED
                replied.fail(error)

        advance = replied.guard(lambda step: replied.complete(self._advance(header, step)))
        coming.then(advance, failed)
        return replied

    def _advance(self, header: RequestHeader | None, step: Step) -> Reply:
        if not isinstance(step, Authenticated):
            self._go(Event.CHALLENGED)
            return Reply(Verdict.GO_ON, _answer(header, step.token, 0))
        before = self._before
        if before is not None and step.principal != before.principal:
            old, new = (one.replace(":", ".", 1) for one in (before.principal, step.principal))
            text = f"Cannot change principals during re-authentication from {old}: {new}"
            return self._fail(header, RefusedError(text))
        assert self._mechanism is not None
        clock = self._terms.clock
        limit_ms = self._terms.max_reauth_ms[self._mechanism.name]
        left_ms = lifetime_ms(limit_ms, step.expires_at_ms, clock.now_ms())
        expires_at_ms = None if left_ms is None else clock.monotonic_ms() + left_ms
        self._go(Event.AUTHENTICATED)
        session = Session(step.principal, self._mechanism, expires_at_ms)
        return Reply(Verdict.ADMIT, _answer(header, step.token, left_ms or 0), session=session)

    def _fail(self, header: RequestHeader | None, error: Exception) -> Reply:
        """The mechanism refuses the client."""
        assert self._mechanism is not None
        reason = f"SASL {self._mechanism.name}: {error}"
        is_told = isinstance(error, RefusedError)
        if header is None:
            return self._refuse(reason) if is_told else self._hang_up(reason)
        again = "authentication" if self._before is None else "re-authentication"
        generic = (
            f"Authentication failed during {again} due to invalid credentials "
            f"with SASL mechanism {self._mechanism.name}"
        )
        answer = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message=str(error) if is_told else generic,
            auth_bytes=b"",
        )
        return self._refuse(reason, reply.framed(header, answer))

    def _reject_request(self, header: RequestHeader, frame: memoryview, position: int) -> Reply:
        """A request that may not come now."""
        if header.api_key == ApiKey.API_VERSIONS and self.state is State.HANDSHAKE:
            return self._hang_up("ApiVersions came twice during authentication")
        name = ApiKey(header.api_key).name
        reason = f"{name} came before authentication was complete"
        kind = self._terms.requests.get(header.api_key)
        if kind is None or self.state is not State.TOKENS or len(frame) > MAX_REFUSED_BYTES:
            return self._refuse(reason)
        text = f"Unexpected Kafka request of type {name} during SASL authentication."
        error = ApiError(ErrorCode.ILLEGAL_SASL_STATE, text)
        answer = _error_answer(header, _decoded(kind, header, frame, position), error)
        return self._refuse(reason, answer)

    def _refuse(self, reason: str, answer: list[Part] | None = None) -> Reply:
        self.state = State.FAILED
        return reply.refuse(reason, answer)

    def _hang_up(self, reason: str) -> Reply:
        self.state = State.FAILED
        return reply.hang_up(reason)

    def _go(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]


def _decoded(kind: type[R], header: RequestHeader, frame: memoryview, position: int) -> R:
    if header.api_version not in kind.VERSIONS:
        raise _UnreadableError(f"{kind.__name__} has no version {header.api_version}")
    try:
        return kind.decode_from(header.api_version, frame, position)[0]
    except UNDECODABLE as error:
        raise _UnreadableError(f"malformed {kind.__name__}: {error}") from None


def _error_answer(header: RequestHeader, request: Request, error: ApiError) -> list[Part] | None:
    """Encoded answer with an error; None if the answer has no place for it."""
    if isinstance(request, ProduceRequest) and not request.acks:
        return None
    try:
        return reply.framed(header, error_answer(request, header.api_version, error))
    except (NoPlaceError, *UNENCODABLE):
        return None


def _read_header(frame: memoryview) -> tuple[RequestHeader | None, int, str]:
    try:
        header, position = parse_request_header(frame)
    except DecodeError as error:
        return None, 0, str(error)
    return header, position, ""


def _answer(header: RequestHeader | None, token: bytes | None, lifetime: int) -> list[Part] | None:
    if header is None:
        return None if token is None else reply.bare(token)
    answer = SaslAuthenticateResponse(
        error_code=ErrorCode.NONE, auth_bytes=token or b"", session_lifetime_ms=lifetime
    )
    return reply.framed(header, answer)


def _shown(name: str) -> str:
    return repr(name[:64])
