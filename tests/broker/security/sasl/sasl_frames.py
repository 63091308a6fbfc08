"""Frames of a client that authenticates, and a server's side to send them to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.runtime.deferred import Deferred
from broker.security.sasl.conversation import Conversation, Terms
from broker.security.sasl.plain import PlainMechanism
from protocol.api_keys import ApiKey
from protocol.headers import response_header_bytes
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.support.wire import request_header

if TYPE_CHECKING:
    from broker.security.sasl.reply import Reply, Session
    from protocol.schema import Request, Response

CORRELATION_ID = 7
SIZE_BYTES = 4
PASSWORDS = {"user_alice": "alice-secret", "user_bob": "bob-secret", "username": "broker"}
VERSIONS = [b"the versions"]
REQUESTS: dict[int, type[Request]] = {
    int(kind.API_KEY): kind
    for kind in (ApiVersionsRequest, MetadataRequest, ProduceRequest, SaslHandshakeRequest)
}


class SettableClock:
    """Two clocks that a test sets."""

    def __init__(self) -> None:
        self.wall_ms = 1_000_000
        self.passed_ms = 5_000

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.passed_ms


class Talk:
    """A client with one conversation."""

    def __init__(
        self,
        mechanisms: dict[str, Any] | None = None,
        *,
        before: Session | None = None,
        max_reauth_ms: int = 0,
        are_versions_listed: bool = True,
    ) -> None:
        self.clock = SettableClock()
        offered = mechanisms or {"PLAIN": PlainMechanism(PASSWORDS)}
        limits = dict.fromkeys(offered, max_reauth_ms)
        self.terms = Terms(offered, limits, self.clock, REQUESTS)
        self.conversation = Conversation(
            self.terms, lambda _: (list(VERSIONS), are_versions_listed), before
        )

    def send(self, frame: bytes) -> Reply:
        reply = self.conversation.receive(memoryview(frame))
        return reply.value if isinstance(reply, Deferred) else reply

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Reply:
        return self.send(handshake(mechanism, version))

    def authenticate(self, token: bytes, version: int = 2) -> Reply:
        return self.send(authenticate(token, version))


def frame_of(request: Request, version: int) -> bytes:
    """A request as it comes to a gate, without its size."""
    key = ApiKey(type(request).API_KEY)
    tags = b"\0" if version in type(request).FLEXIBLE else b""
    return request_header(key, version, CORRELATION_ID) + tags + request.encode(version)


def api_versions(version: int = 3) -> bytes:
    message = ApiVersionsRequest()
    if version >= 3:
        message = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return frame_of(message, version)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return frame_of(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(token: bytes, version: int = 2) -> bytes:
    return frame_of(SaslAuthenticateRequest(auth_bytes=token), version)


def plain(user: str = "alice", password: str = "alice-secret", wanted: str = "") -> bytes:
    return f"{wanted}\0{user}\0{password}".encode()


def handshake_answer(reply: Reply, version: int = 1) -> SaslHandshakeResponse:
    return SaslHandshakeResponse.decode(version, _body(reply, ApiKey.SASL_HANDSHAKE, version))


def authenticate_answer(reply: Reply, version: int = 2) -> SaslAuthenticateResponse:
    body = _body(reply, ApiKey.SASL_AUTHENTICATE, version)
    return SaslAuthenticateResponse.decode(version, body)


def versions_answer(reply: Reply, version: int = 3) -> ApiVersionsResponse:
    return ApiVersionsResponse.decode(version, _body(reply, ApiKey.API_VERSIONS, version))


def answer_to(kind: type[Request], reply: Reply, version: int) -> Response:
    return kind.RESPONSE.decode(version, _body(reply, kind.API_KEY, version))


def _body(reply: Reply, key: ApiKey, version: int) -> bytes:
    assert reply.answer is not None
    data = b"".join(bytes(part) for part in reply.answer)  # type: ignore[arg-type]
    assert int.from_bytes(data[:SIZE_BYTES], "big") == len(data) - SIZE_BYTES
    front = SIZE_BYTES + response_header_bytes(key, version)
    assert int.from_bytes(data[SIZE_BYTES : 2 * SIZE_BYTES], "big") == CORRELATION_ID
    return data[front:]
