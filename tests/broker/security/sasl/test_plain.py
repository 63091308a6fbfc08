"""PLAIN: names and passwords, and the errors about them."""

from __future__ import annotations

import pytest

from broker.security.sasl.mechanism import RefusedError
from broker.security.sasl.plain import PlainMechanism

MECHANISM = PlainMechanism(
    {"user_alice": "alice-secret", "user_ä": "ö€", "user_": "nobody", "username": "x", "user_c": ""}
)


@pytest.mark.parametrize(
    ("token", "principal"),
    [
        ("\0alice\0alice-secret", "User:alice"),
        ("alice\0alice\0alice-secret", "User:alice"),
        ("\0ä\0ö€", "User:ä"),
    ],
)
def test_the_right_password_names_the_user(token: str, principal: str) -> None:
    assert MECHANISM.exchange().respond(token.encode()).principal == principal


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"\0alice\0wrong", "Invalid username or password"),
        (b"\0alice\0alice-secre", "Invalid username or password"),
        (b"\0mallory\0alice-secret", "Invalid username or password"),
        (b"\0name\0x", "Invalid username or password"),
        (b"\0alice\0\xff\xfe", "Invalid username or password"),
        (b"bob\0alice\0alice-secret", "authorization id that is different from username"),
        (b"\0\0nobody", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"\0c\0", "password not specified"),
        (b"", "expected 3 tokens, got 1"),
        (b"alice\0alice-secret", "expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0", "expected 3 tokens, got 4"),
        (b"\0" * 100_000, "expected 3 tokens, got 4"),
    ],
)
def test_invalid_plain_tokens_are_refused_with_kafkas_message(token: bytes, why: str) -> None:
    with pytest.raises(RefusedError, match=why) as raised:
        MECHANISM.respond(token)

    assert "secret" not in str(raised.value)


def test_bytes_that_are_not_utf_8_are_compared_as_java_reads_them() -> None:
    mechanism = PlainMechanism({"user_caf\ufffd": "\ufffd!"})
    token = b"\0caf\xe9\0\xed\xa0\x80!"
    assert mechanism.respond(token).principal == "User:caf\ufffd"
