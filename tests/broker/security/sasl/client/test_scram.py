"""SCRAM at the side of a client: a server has to prove that it knows the password."""

from __future__ import annotations

import asyncio
import base64

import pytest

from broker.security.sasl.client.mechanism import LoginError
from broker.security.sasl.client.scram import MAX_ITERATIONS
from broker.security.sasl.mechanism import Challenge
from tests.broker.security.sasl.scram_users import Users, client, server

PASSWORDS = {"alice": "alice-secret"}
SALT = base64.b64encode(b"salt").decode()


def test_the_password_is_salted_once_for_a_salt() -> None:
    computed: list[int] = []
    who, scram = client("alice", "alice-secret", computed=computed), server(Users(PASSWORDS))

    async def scenario() -> None:
        for _ in range(3):
            own, exchange = who.exchange(), scram.exchange()
            challenge = exchange.respond(await own.first())
            assert isinstance(challenge, Challenge)
            proof = await own.respond(challenge.token)
            assert proof is not None
            exchange.respond(proof)

    asyncio.run(scenario())
    assert len(computed) == 1


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        ("", "malformed"),
        ("e=unknown-user", "malformed"),
        (f"r={{nonce}},s={SALT},i=4096", "nonce"),
        (f"r=x{{nonce}},s={SALT},i=4096", "nonce"),
        (f"r={{nonce}}x,s={SALT},i=4095", "4095 iterations"),
        (f"r={{nonce}}x,s={SALT},i={MAX_ITERATIONS + 1}", "1000001 iterations"),
        (f"r={{nonce}}x,s={SALT},i=9999999999", "malformed"),
    ],
)
def test_a_strange_challenge_is_not_answered(challenge: str, why: str) -> None:
    async def scenario() -> None:
        own = client("alice", "alice-secret").exchange()
        nonce = (await own.first()).rpartition(b"r=")[2].decode()
        with pytest.raises(LoginError, match=why):
            await own.respond(challenge.format(nonce=nonce).encode())

    asyncio.run(scenario())


@pytest.mark.parametrize("final", [b"v=AAAA", b"v=", b"e=other-error", b""])
def test_a_server_without_the_password_is_refused(final: bytes) -> None:
    async def scenario() -> None:
        own = client("alice", "alice-secret").exchange()
        challenge = server(Users(PASSWORDS)).exchange().respond(await own.first())
        assert isinstance(challenge, Challenge)
        await own.respond(challenge.token)
        with pytest.raises(LoginError):
            await own.respond(final)

    asyncio.run(scenario())
