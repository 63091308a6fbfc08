"""OAUTHBEARER exchanges."""

from __future__ import annotations

import pytest

from broker.runtime.deferred import Deferred
from broker.security.oauth.bearer_token import BearerToken, InvalidTokenError
from broker.security.oauth.client_message import client_message
from broker.security.oauth.mechanism import OauthBearerExchange, OauthBearerMechanism
from broker.security.sasl.mechanism import (
    Authenticated,
    Challenge,
    InvalidCredentialsError,
    RefusedError,
)
from tests.support.broker_parts.services import StandingClock

GOOD = client_message("good")
BAD = client_message("bad")


class Validator:
    """Validator that accepts one token; may answer later."""

    def __init__(self, thought: Deferred[BearerToken] | None = None) -> None:
        self._thought = thought

    def validate(self, token: str, now_ms: int) -> BearerToken | Deferred[BearerToken]:
        if self._thought is not None:
            return self._thought
        if token != "good":
            raise InvalidTokenError("not good")
        return BearerToken("alice", 77)


def begin(validator: Validator | None = None) -> tuple[OauthBearerExchange, list[str]]:
    told: list[str] = []
    mechanism = OauthBearerMechanism(validator or Validator(), StandingClock(), told.append)
    return mechanism.exchange(), told


def test_valid_token_authenticates_until_it_expires() -> None:
    exchange, _ = begin()
    assert exchange.respond(GOOD) == Authenticated("User:alice", b"", 77)


def test_an_invalid_token_is_refused_after_the_clients_dummy_response() -> None:
    exchange, told = begin()
    assert exchange.respond(BAD) == Challenge(b'{"status":"invalid_token"}')
    assert told == ["not good"]
    with pytest.raises(RefusedError, match="invalid_token"):
        exchange.respond(b"\x01")


def test_client_may_show_another_token() -> None:
    exchange, _ = begin()
    exchange.respond(BAD)
    assert isinstance(exchange.respond(GOOD), Authenticated)


def test_end_that_follows_no_error_is_malformed() -> None:
    exchange, _ = begin()
    with pytest.raises(InvalidCredentialsError):
        exchange.respond(b"\x01")


def test_authorisation_id_has_to_be_the_tokens_user() -> None:
    exchange, _ = begin()
    assert isinstance(exchange.respond(GOOD.replace(b"n,,", b"n,a=alice,")), Authenticated)
    with pytest.raises(RefusedError, match="different from the token's principal name"):
        exchange.respond(GOOD.replace(b"n,,", b"n,a=admin,"))


def test_answer_waits_for_a_validator_that_waits() -> None:
    thought: Deferred[BearerToken] = Deferred()
    exchange, _ = begin(Validator(thought))
    answer = exchange.respond(GOOD)
    assert isinstance(answer, Deferred)
    thought.complete(BearerToken("alice", 77))
    assert answer.value == Authenticated("User:alice", b"", 77)


def test_a_deferred_refusal_is_sent_and_logged() -> None:
    thought: Deferred[BearerToken] = Deferred()
    exchange, told = begin(Validator(thought))
    answer = exchange.respond(GOOD)
    assert isinstance(answer, Deferred)
    thought.fail(InvalidTokenError("no keys"))
    assert answer.value == Challenge(b'{"status":"invalid_token"}')
    assert told == ["no keys"]


def test_late_wrong_authorisation_id_is_refused() -> None:
    thought: Deferred[BearerToken] = Deferred()
    exchange, _ = begin(Validator(thought))
    answer = exchange.respond(GOOD.replace(b"n,,", b"n,a=admin,"))
    assert isinstance(answer, Deferred)
    thought.complete(BearerToken("alice", 77))
    with pytest.raises(RefusedError):
        _ = answer.value
