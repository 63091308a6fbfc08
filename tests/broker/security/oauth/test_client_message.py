"""The first message of a client, and the server's error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.oauth.client_message import (
    ClientMessage,
    client_message,
    parse_client_message,
    refusal,
)
from broker.security.sasl.mechanism import InvalidCredentialsError


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,\x01auth=Bearer abc\x01\x01", ClientMessage("abc")),
        (b"n,a=alice,\x01auth=bearer  a.b-_~+/==\x01\x01", ClientMessage("a.b-_~+/==", "alice")),
        (b"n,a=a=2Cb,\x01host=h\x01auth=Bearer t\x01port=1 2\x01\x01", ClientMessage("t", "a=2Cb")),
        (b"n,,\x01auth=Bearer one\x01auth=Bearer two\x01\x01", ClientMessage("two")),
    ],
)
def test_message_is_taken_apart(message: bytes, expected: ClientMessage) -> None:
    assert parse_client_message(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer abc\x01",
        b"n,,\x01auth=Bearer abc\x01\x01x",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"n,a=,\x01auth=Bearer abc\x01\x01",
        b"n,a=b=c,\x01auth=Bearer abc\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01h1=x\x01auth=Bearer abc\x01\x01",
        "n,,\x01auth=Bearer ä\x01\x01".encode(),
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
def test_malformed_message_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidCredentialsError):
        parse_client_message(message)


def test_our_client_message_is_parsed_back() -> None:
    message = client_message("a.b.c", {"logicalCluster": "lkc-1"})
    assert message == b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc-1\x01\x01"
    assert parse_client_message(message) == ClientMessage("a.b.c")


@pytest.mark.parametrize("scope", [None, "[read]", 'a"b'])
def test_refusal_is_json(scope: str | None) -> None:
    content = json.loads(refusal("invalid_token", scope))
    assert content.get("scope") == scope
    assert content["status"] == "invalid_token"


@given(st.binary(max_size=300))
def test_no_message_breaks_the_reader(message: bytes) -> None:
    try:
        parse_client_message(message)
    except InvalidCredentialsError:
        return


@given(st.binary(max_size=60), st.integers(0, 40))
def test_no_damage_breaks_the_reader(damage: bytes, at: int) -> None:
    message = client_message("a.b.c", {"extension": "value"})
    try:
        parse_client_message(message[:at] + damage + message[at + len(damage) :])
    except InvalidCredentialsError:
        return
