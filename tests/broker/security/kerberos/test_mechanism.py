"""GSSAPI exchanges, with a library that agrees after as many tokens as a test wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.runtime.deferred import Deferred, errors_to
from broker.security.kerberos.mechanism import OFFER, GssapiExchange, GssapiMechanism
from broker.security.kerberos.principal_names import PrincipalNames
from broker.security.sasl.mechanism import (
    Authenticated,
    Challenge,
    InvalidCredentialsError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.security.sasl.mechanism import Step


class Context:
    """Agrees once it was given as many tokens as it answers."""

    def __init__(self, *answers: bytes, client: str = "alice@HERE") -> None:
        self._answers = list(answers)
        self.client = client

    @property
    def is_established(self) -> bool:
        return not self._answers

    def step(self, token: bytes) -> bytes:
        if token == b"bad":
            raise InvalidCredentialsError("defective token")
        return self._answers.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"signed " + message

    def unwrap(self, token: bytes) -> bytes:
        if not token.startswith(b"signed "):
            raise InvalidCredentialsError("not signed")
        return token.removeprefix(b"signed ")


def at_once(work: Callable[[], Step]) -> Deferred[Step]:
    outcome: Deferred[Step] = Deferred()
    with errors_to(outcome):
        outcome.complete(work())
    return outcome


def begin(context: Context) -> GssapiExchange:
    names = PrincipalNames(("DEFAULT",), "HERE")
    return GssapiMechanism(lambda: context, names, at_once).exchange()


def step(exchange: GssapiExchange, token: bytes) -> Step:
    return exchange.respond(token).value


def test_client_that_does_not_check_us_gets_the_offer_at_once() -> None:
    exchange = begin(Context(b""))
    assert step(exchange, b"ticket") == Challenge(b"signed " + OFFER)
    assert step(exchange, b"signed \x01\0\0\0") == Authenticated("User:alice")


def test_client_that_checks_us_asks_for_the_offer() -> None:
    exchange = begin(Context(b"more", b"proof"))
    assert step(exchange, b"ticket") == Challenge(b"more")
    assert step(exchange, b"authenticator") == Challenge(b"proof")
    assert step(exchange, b"") == Challenge(b"signed " + OFFER)
    assert step(exchange, b"signed \x01\0\0\0admin") == Authenticated("User:alice")


@pytest.mark.parametrize(
    "tokens",
    [
        [b""],
        [b"bad"],
        [b"ticket", b"not empty"],
        [b"ticket", b"", b"unsigned"],
        [b"ticket", b"", b"signed "],
        [b"ticket", b"", b"signed \x01\0"],
        [b"ticket", b"", b"signed \x02\0\0\0"],
        [b"ticket", b"", b"signed \x05\0\0\0"],
    ],
)
def test_other_tokens_are_refused_for_good(tokens: list[bytes]) -> None:
    exchange = begin(Context(b"proof"))
    for token in tokens[:-1]:
        assert isinstance(step(exchange, token), Challenge)
    with pytest.raises(InvalidCredentialsError):
        step(exchange, tokens[-1])
    with pytest.raises(InvalidCredentialsError, match="over"):
        step(exchange, b"ticket")


def test_principal_without_a_name_here_is_refused() -> None:
    exchange = begin(Context(b"", client="alice@THERE"))
    step(exchange, b"ticket")
    with pytest.raises(InvalidCredentialsError, match="no rule"):
        step(exchange, b"signed \x01\0\0\0")
