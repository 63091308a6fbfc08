"""Delegation tokens in the tree, byte for byte as an Apache Kafka 3.9.1 broker wrote them."""

from __future__ import annotations

import pytest

from controller.security.delegation_token_znodes import (
    DelegationToken,
    decode_token,
    encode_token,
)
from controller.znodes import MalformedZnodeError

OF_APACHE = (
    b'{"issueTimestamp":1795432426668,"renewers":["User%3Abob","User%3Acarol%20d%2A%7E%2B%C3%A9"],'
    b'"tokenRequester":"User%3Aadmin","tokenId":"tMqLUqwIR7utVuONtaMQkQ","owner":"User%3Aalice",'
    b'"expiryTimestamp":1795518826668,"maxTimestamp":1796037226668,"version":3}'
)
TOKEN = DelegationToken(
    token_id="tMqLUqwIR7utVuONtaMQkQ",
    owner="User:alice",
    requester="User:admin",
    renewers=("User:bob", "User:carol d*~+é"),
    issue_ms=1795432426668,
    max_ms=1796037226668,
    expiry_ms=1795518826668,
)


def test_token_is_written_as_apache_writes_it() -> None:
    assert encode_token(TOKEN) == OF_APACHE


def test_token_of_apache_is_read() -> None:
    assert decode_token("/t", OF_APACHE) == TOKEN


def test_token_before_kip_373_was_requested_by_its_owner() -> None:
    old = OF_APACHE.replace(b'"version":3', b'"version":2').replace(
        b'"tokenRequester":"User%3Aadmin",', b""
    )
    token = decode_token("/t", old)
    assert token is not None
    assert token.requester == "User:alice"


def test_empty_node_is_no_token() -> None:
    assert decode_token("/t", b"") is None


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"7",
        OF_APACHE.replace(b'"version":3', b'"version":4'),
        OF_APACHE.replace(b'"owner":"User%3Aalice",', b""),
        OF_APACHE.replace(b"User%3Aalice", b"alice"),
        OF_APACHE.replace(b"1795432426668", b'"soon"'),
    ],
)
def test_a_malformed_token_znode_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedZnodeError):
        decode_token("/t", data)
