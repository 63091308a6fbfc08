"""SCRAM at the side of the server, by the RFC's example and against our own client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.security.principal import TokenPrincipal
from broker.security.sasl.mechanism import (
    Authenticated,
    Challenge,
    InvalidCredentialsError,
    RefusedError,
)
from broker.security.sasl.scram import ScramExchange, base36
from broker.security.sasl.scram_keys import is_proved, signature_of
from broker.security.sasl.scram_messages import read_client_first, read_server_first
from tests.broker.security.sasl.scram_users import SHA_256, SHA_512, Users, client, server

if TYPE_CHECKING:
    from broker.security.sasl.client.scram import ScramClient
    from protocol.scram_types import ScramMechanism

PASSWORDS = {"alice": "alice-secret", "a,b=c": "ö€,=", "bob": "b"}


def log_in(exchange: ScramExchange, who: ScramClient) -> Authenticated:
    """Run both sides to the end; the client checks the server."""

    async def both() -> Authenticated:
        own = who.exchange()
        token = await own.first()
        while True:
            step = exchange.respond(token)
            assert step.token is not None
            answer = await own.respond(step.token)
            if isinstance(step, Authenticated):
                assert answer is None
                return step
            assert answer is not None
            token = answer

    return asyncio.run(both())


def first_message(name: str, extensions: str = "", authzid: str = "") -> bytes:
    return f"n,{authzid},n={name},r=nonce{extensions}".encode()


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("user", PASSWORDS)
def test_a_user_logs_in_with_the_password(mechanism: ScramMechanism, user: str) -> None:
    exchange = server(Users(PASSWORDS), mechanism).exchange()

    step = log_in(exchange, client(user, PASSWORDS[user], mechanism))

    assert (step.principal, step.expires_at_ms) == (f"User:{user}", None)


@pytest.mark.parametrize(("user", "password"), [("alice", "guess"), ("mallory", "x"), ("bob", "")])
def test_a_wrong_password_and_an_unknown_name_fail_alike(user: str, password: str) -> None:
    exchange = server(Users(PASSWORDS)).exchange()

    with pytest.raises(InvalidCredentialsError, match="unknown name or wrong password"):
        log_in(exchange, client(user, password))


def test_an_unknown_name_gets_the_same_challenge_each_time() -> None:
    scram = server(Users(PASSWORDS))

    def challenge(name: str) -> tuple[bytes, int]:
        step = scram.exchange().respond(first_message(name))
        assert isinstance(step, Challenge)
        first = read_server_first(step.token)
        return first.salt, first.iterations

    assert challenge("mallory") == challenge("mallory")
    assert challenge("mallory")[0] != challenge("trudy")[0]
    assert challenge("mallory")[1] == challenge("alice")[1]


def test_an_unknown_users_challenge_never_authenticates() -> None:
    first = read_client_first(first_message("mallory"))
    principal, invented, _ = server(Users({})).look_up(first)
    said = b"anything"
    signature = signature_of(SHA_256, invented.stored_key, said)
    proof = bytes(one ^ other for one, other in zip(invented.stored_key, signature, strict=False))

    assert principal is None
    assert not is_proved(SHA_256, invented, said, proof)


def test_a_delegation_token_logs_its_owner_in() -> None:
    users = Users(PASSWORDS)
    who = client("token-id", users.token_hmac, is_token=True)

    step = log_in(server(users).exchange(), who)

    assert (step.principal, step.expires_at_ms) == ("User:alice", 12_345)
    assert isinstance(step.principal, TokenPrincipal)


def test_a_user_is_no_token_and_a_token_no_user() -> None:
    users = Users(PASSWORDS)
    for who in (
        client("token-id", users.token_hmac),
        client("alice", "alice-secret", is_token=True),
    ):
        with pytest.raises(InvalidCredentialsError):
            log_in(server(users).exchange(), who)


def test_fewer_iterations_than_allowed_are_refused() -> None:
    with pytest.raises(InvalidCredentialsError, match="fewer iterations"):
        server(Users(PASSWORDS, 4095)).exchange().respond(first_message("alice"))


def test_an_authorization_id_of_another_user_is_refused() -> None:
    exchange = server(Users(PASSWORDS)).exchange()

    with pytest.raises(RefusedError, match="authorization id that is different from username"):
        exchange.respond(first_message("alice", authzid="a=bob"))

    challenge = server(Users(PASSWORDS)).exchange().respond(first_message("alice", "", "a=alice"))
    assert isinstance(challenge, Challenge)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=alice",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=a=b,r=x",
        b"n,,n=a=2c,r=x",
        b"n,,m=must,n=alice,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=with space",
        b"n,,n=alice,r=x,1=2",
        "n,,n=älice,r=x".encode(),
        b"n,,n=\xff,r=x",
        b"n,,n=alice,r=x\n",
        b"\0" * 100_000,
    ],
)
def test_malformed_first_messages_are_refused(message: bytes) -> None:
    with pytest.raises(InvalidCredentialsError, match="malformed client first message"):
        server(Users(PASSWORDS)).exchange().respond(message)


@pytest.mark.parametrize(
    ("final", "why"),
    [
        ("", "malformed"),
        ("c=biws,r={nonce}", "malformed"),
        ("c=biws,r={nonce},p=*", "malformed"),
        ("c=biws,r={nonce},p=AAAA", "wrong password"),
        ("c=biws,r={nonce},p=", "wrong password"),
        ("c=biws,r=x{nonce},p=AAAA", "nonce"),
        ("c=biws,r={nonce}x,p=AAAA", "nonce"),
        ("c=biws,r=nonce,p=AAAA", "nonce"),
    ],
)
def test_invalid_client_proofs_are_refused(final: str, why: str) -> None:
    exchange = server(Users(PASSWORDS)).exchange()
    challenge = exchange.respond(first_message("alice"))
    assert isinstance(challenge, Challenge)
    nonce = read_server_first(challenge.token).nonce

    with pytest.raises(InvalidCredentialsError, match=why):
        exchange.respond(final.format(nonce=nonce).encode())


def test_a_proof_that_was_overheard_is_of_no_use() -> None:
    users = Users(PASSWORDS)
    scram, overheard = server(users), []

    class Wiretapped(ScramExchange):
        def respond(self, token: bytes) -> Challenge | Authenticated:
            overheard.append(token)
            return super().respond(token)

    log_in(Wiretapped(scram), client("alice", "alice-secret"))

    exchange = scram.exchange()
    exchange.respond(overheard[0])
    with pytest.raises(InvalidCredentialsError, match="nonce"):
        exchange.respond(overheard[1])


def test_a_deleted_user_is_unknown_from_the_next_attempt_on() -> None:
    users = Users(dict(PASSWORDS))
    scram = server(users)
    log_in(scram.exchange(), client("alice", "alice-secret"))

    del users.passwords["alice"]

    with pytest.raises(InvalidCredentialsError):
        log_in(scram.exchange(), client("alice", "alice-secret"))


def test_numbers_are_written_as_java_does() -> None:
    assert [base36(number) for number in (0, 35, 36, 2**64)] == ["0", "z", "10", "3w5e11264sgsg"]
