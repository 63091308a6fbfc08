"""JSON Web Tokens accepted and refused."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from broker.security.oauth.bearer_token import BearerToken, InvalidTokenError
from broker.security.oauth.jwks import JsonWebKeys, parse_keys
from broker.security.oauth.jwt_validation import Expectations, JwtValidator
from broker.security.oauth.key_sources import FileKeys
from tests.broker.security.oauth.provider import (
    CLAIMS,
    NOW,
    NOW_MS,
    ec_key,
    ed_key,
    jwk,
    key_set,
    rsa_key,
    token,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def keys() -> JsonWebKeys:
    return parse_keys(
        key_set(
            jwk(rsa_key(), kid="one"),
            jwk(ec_key(), kid="two"),
            jwk(ed_key(), kid="three"),
            jwk(rsa_key(2), kid="four", alg="RS512"),
        )
    )


def check(text: str, expected: Expectations | None = None) -> BearerToken:
    found = JwtValidator(FileKeys(keys()), expected or Expectations()).validate(text, NOW_MS)
    assert isinstance(found, BearerToken)
    return found


def refused(text: str, expected: Expectations | None = None) -> str:
    with pytest.raises(InvalidTokenError) as caught:
        check(text, expected)
    return str(caught.value)


def encoded(content: object) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("key", "algorithm", "key_id"),
    [
        (rsa_key, "RS256", "one"),
        (rsa_key, "RS384", "one"),
        (rsa_key, "PS256", "one"),
        (ec_key, "ES256", "two"),
        (ed_key, "EdDSA", "three"),
        (lambda: rsa_key(2), "RS512", "four"),
        (rsa_key, "RS256", None),
    ],
)
def test_a_signed_token_is_accepted(
    key: Callable[[], Any], algorithm: str, key_id: str | None
) -> None:
    found = check(token(key(), algorithm, key_id))
    assert (found.name, found.expires_at_ms) == ("alice", 1000 * (NOW + 100))


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW - 31}, "has expired 31 s ago"),
        ({"exp": NOW - 30, "iat": NOW - 60}, "has expired"),
        ({"exp": None}, "must say when"),
        ({"iat": None}, "must say when"),
        ({"exp": "soon"}, "'exp' is no time"),
        ({"exp": True}, "'exp' is no time"),
        ({"exp": -1}, "'exp' is no time"),
        ({"exp": 1e300}, "'exp' is no time"),
        ({"iat": NOW + 500}, "expires before it is valid"),
        ({"nbf": NOW + 31}, "valid only in 31 s"),
        ({"nbf": NOW + 101}, "expires before it is valid"),
        ({"sub": None}, "no user"),
        ({"sub": " "}, "no user"),
        ({"sub": 7}, "'sub' is no text"),
        ({"jti": 7}, "'jti' is no text"),
        ({"iss": ["a"]}, "'iss' is no text"),
        ({"aud": "kafka"}, "another audience"),
        ({"aud": 7}, "'aud' is no text"),
        ({"scope": ""}, "scope is empty"),
        ({"scope": ["a", "a"]}, "named twice"),
        ({"scope": ["a", 7]}, "scope is empty"),
    ],
)
def test_token_with_odd_claims_is_refused(claims: dict[str, Any], why: str) -> None:
    assert why in refused(token(rsa_key(), **claims))


def test_clocks_may_differ_by_the_skew() -> None:
    assert check(token(rsa_key(), exp=NOW - 29, iat=NOW - 60)).name == "alice"
    assert check(token(rsa_key(), nbf=NOW + 30)).name == "alice"
    strict = Expectations(clock_skew_seconds=0)
    assert "has expired" in refused(token(rsa_key(), exp=NOW, iat=NOW - 60), strict)


def test_token_may_have_been_issued_in_the_future_as_in_apache() -> None:
    assert check(token(rsa_key(), iat=NOW + 50)).name == "alice"


def test_audience_has_to_be_one_that_is_expected() -> None:
    expected = Expectations(audiences=frozenset({"kafka", "logs"}))
    assert check(token(rsa_key(), aud="kafka"), expected).name == "alice"
    assert check(token(rsa_key(), aud=["web", "logs"]), expected).name == "alice"
    others: list[object] = [None, "web", []]
    for aud in others:
        assert "another audience" in refused(token(rsa_key(), aud=aud), expected)


def test_issuer_has_to_be_the_expected_one() -> None:
    expected = Expectations(issuer="https://id")
    assert check(token(rsa_key(), iss="https://id"), expected).name == "alice"
    for iss in (None, "https://other"):
        assert "another issuer" in refused(token(rsa_key(), iss=iss), expected)


def test_claims_may_have_other_names() -> None:
    expected = Expectations(scope_claim="scp", name_claim="email")
    found = check(token(rsa_key(), email=" a@b ", scp=["read", "write"]), expected)
    assert (found.name, found.scope) == ("a@b", frozenset({"read", "write"}))


def test_token_of_another_key_is_refused() -> None:
    assert "cannot be trusted" in refused(token(rsa_key(3)))
    assert "no key 'nine'" in refused(token(rsa_key(), key_id="nine"))


def test_altered_token_is_refused() -> None:
    header, _, signature = token(rsa_key()).split(".")
    altered = f"{header}.{encoded(CLAIMS | {'sub': 'admin'})}.{signature}"
    assert "cannot be trusted" in refused(altered)


def test_unsigned_token_is_refused() -> None:
    for name in ("none", "None", "NONE"):
        header, claims = encoded({"alg": name, "kid": "one"}), encoded(CLAIMS)
        assert "three parts" in refused(f"{header}.{claims}.")
        assert "must not be signed with" in refused(f"{header}.{claims}.AAAA")


def test_public_key_is_not_taken_for_a_shared_secret() -> None:
    # Given tokens signed by HMAC with what everybody can read: the public key in two forms.
    public = rsa_key().public_key()
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for secret in (pem, json.dumps(jwk(rsa_key(), kid="one")).encode()):
        signed = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(CLAIMS)}"
        mac = hmac.digest(secret, signed.encode(), hashlib.sha256)
        confused = f"{signed}.{urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        assert "must not be signed with 'HS256'" in refused(confused)


def test_key_is_used_with_its_own_algorithms_only() -> None:
    assert "no key 'four' for RS256" in refused(token(rsa_key(2), "RS256", "four"))
    assert "no key 'two' for RS256" in refused(token(rsa_key(), "RS256", "two"))


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "ä.ö.ü", "." * 1000, f"{encoded([])}.e30.AAAA"],
)
def test_a_malformed_token_is_refused(text: str) -> None:
    assert refused(text)


def test_deeply_nested_token_is_refused() -> None:
    deep = urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")
    assert refused(f"{deep}.{deep}.AAAA")


def test_signed_json_that_is_no_object_is_refused() -> None:
    import jwt

    text = jwt.PyJWS().encode(b"[1]", rsa_key(), "RS256", headers={"kid": "one"})
    assert "no object" in refused(text)


@given(st.text(max_size=200), st.sampled_from([0, 1, 2]))
def test_no_damage_makes_a_token_valid_or_breaks_the_check(text: str, part: int) -> None:
    parts = token(ec_key(), "ES256", "two").split(".")
    if parts[part] == text:
        return
    parts[part] = text
    assert refused(".".join(parts))
