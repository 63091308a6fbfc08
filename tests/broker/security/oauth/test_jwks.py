"""Key sets of providers."""

from __future__ import annotations

import json

import pytest

from broker.security.oauth.jwks import UnusableKeysError, parse_keys
from tests.broker.security.oauth.provider import ec_key, jwk, key_set, rsa_key


def test_first_key_that_fits_is_found() -> None:
    keys = parse_keys(key_set(jwk(ec_key(), kid="e"), jwk(rsa_key(), kid="a"), jwk(rsa_key(2))))
    assert len(keys) == 3
    assert keys.find("a", "RS256") is keys.find(None, "RS256")
    assert keys.find("e", "RS256") is None
    assert keys.find("b", "RS256") is None
    assert keys.find("a", "none") is None


def test_symmetric_and_encryption_keys_are_passed_over() -> None:
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "s", "alg": "HS256"}
    keys = parse_keys(key_set(secret, jwk(rsa_key(), use="enc"), jwk(rsa_key(2), use="sig")))
    assert len(keys) == 1
    assert keys.find("s", "HS256") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"keys": 7}',
        '{"keys": []}',
        '{"keys": [7, {}, {"kty": "RSA"}, {"kty": "RSA", "n": 7, "e": "AQAB"}]}',
        '{"keys": [{"kty": ["RSA"], "crv": {}}]}',
        '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}',
        json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}),
    ],
)
def test_a_key_set_without_usable_keys_is_refused_without_its_content(text: str) -> None:
    with pytest.raises(UnusableKeysError) as caught:
        parse_keys(text)
    assert "c2VjcmV0" not in str(caught.value)
