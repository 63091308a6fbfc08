"""Authentication of this broker at another one, which runs our own server side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from broker.network.authentication.link_login import MAX_TOKENS, SaslLogin
from broker.network.links import LinkError
from broker.security.sasl.client.mechanism import Login
from broker.security.sasl.client.plain import PlainClient
from broker.security.sasl.plain import PlainMechanism
from broker.security.sasl.reply import Verdict
from protocol.headers import response_header_bytes
from protocol.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from tests.broker.security.sasl.sasl_frames import PASSWORDS, Talk, frame_of
from tests.broker.security.sasl.scram_users import Users, client, server

if TYPE_CHECKING:
    from broker.security.sasl.client.mechanism import ClientMechanism
    from broker.security.sasl.reply import Reply
    from protocol.schema import Request, Response

USERS = Users({"broker": "broker-secret"})


class Other:
    """The other broker."""

    def __init__(self, max_reauth_ms: int = 0) -> None:
        mechanisms = {"PLAIN": PlainMechanism(PASSWORDS), "SCRAM-SHA-256": server(USERS)}
        self.talk = Talk(mechanisms, max_reauth_ms=max_reauth_ms)
        self.last: Reply | None = None

    async def ask(self, request: Request, version: int) -> Response:
        self.last = reply = self.talk.send(frame_of(request, version))
        assert reply.answer is not None
        data = b"".join(bytes(part) for part in reply.answer)  # type: ignore[arg-type]
        start = 4 + response_header_bytes(type(request).API_KEY, version)
        return type(request).RESPONSE.decode(version, data, start)

    @property
    def verdict(self) -> Verdict | None:
        return None if self.last is None else self.last.verdict


def log_in(mechanism: ClientMechanism, other: Other) -> float | None:
    return asyncio.run(SaslLogin(mechanism).log_in(other.ask))


@pytest.mark.parametrize(
    "mechanism",
    [PlainClient(Login("alice", "alice-secret")), client("broker", "broker-secret")],
    ids=lambda mechanism: mechanism.name,
)
def test_the_other_broker_admits_this_one(mechanism: ClientMechanism) -> None:
    other = Other()

    assert log_in(mechanism, other) is None
    assert other.verdict is Verdict.ADMIT


def test_a_session_is_renewed_before_it_ends() -> None:
    other = Other(max_reauth_ms=100_000)

    assert log_in(PlainClient(Login("alice", "alice-secret")), other) == 85


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        (PlainClient(Login("alice", "guess")), "Invalid username or password"),
        (client("broker", "guess"), "due to invalid credentials"),
    ],
    ids=["PLAIN", "SCRAM"],
)
def test_a_refused_login_carries_the_peers_error_message(
    mechanism: ClientMechanism, why: str
) -> None:
    with pytest.raises(LinkError, match=why) as raised:
        log_in(mechanism, Other())

    assert "guess" not in str(raised.value)


def test_an_unsupported_mechanism_is_reported_with_the_supported_ones() -> None:
    mechanism = PlainClient(Login("alice", "alice-secret"))
    mechanism.name = "CRAM-MD5"

    with pytest.raises(LinkError, match=r"UNSUPPORTED_SASL_MECHANISM.*PLAIN, SCRAM-SHA-256"):
        log_in(mechanism, Other())


def test_a_server_that_does_not_know_the_password_is_left() -> None:
    class Impostor(Other):
        async def ask(self, request: Request, version: int) -> Response:
            answer = await super().ask(request, version)
            if isinstance(answer, SaslAuthenticateResponse) and answer.error_code:
                answer.error_code, answer.auth_bytes = 0, b"v=AAAA"
            return answer

    with pytest.raises(LinkError, match="does not know the password"):
        log_in(client("broker", "mistyped"), Impostor())


def test_an_exchange_without_end_is_ended() -> None:
    class Endless(PlainClient):
        async def respond(self, challenge: bytes) -> Any:
            return b"more"

    asked = 0

    async def ask(request: Request, version: int) -> Response:
        nonlocal asked
        asked += 1
        if asked == 1:
            return SaslHandshakeResponse(error_code=0, mechanisms=[])
        return SaslAuthenticateResponse(error_code=0, auth_bytes=b"")

    with pytest.raises(LinkError, match="no end"):
        asyncio.run(SaslLogin(Endless(Login("a", "b"))).log_in(ask))
    assert asked == 1 + MAX_TOKENS
