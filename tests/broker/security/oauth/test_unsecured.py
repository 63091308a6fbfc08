"""Unsigned tokens, accepted as by Apache Kafka's default."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest

from broker.security.oauth.bearer_token import InvalidTokenError
from broker.security.oauth.unsecured import UnsecuredValidator
from config.errors import ConfigError
from tests.broker.security.oauth.provider import CLAIMS, NOW, NOW_MS

NONE = {"alg": "none"}


def part(content: object) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def unsigned(header: object = None, **claims: Any) -> str:
    content = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return f"{part(NONE if header is None else header)}.{part(content)}."


def refused(text: str, **options: str) -> InvalidTokenError:
    with pytest.raises(InvalidTokenError) as caught:
        UnsecuredValidator(options).validate(text, NOW_MS)
    return caught.value


def test_an_unsecured_token_is_accepted() -> None:
    found = UnsecuredValidator({}).validate(unsigned(scope="a b", exp=NOW + 1.5), NOW_MS)
    assert (found.name, found.expires_at_ms) == ("alice", NOW_MS + 1500)
    assert found.scope == {"a b"}


def test_padding_and_the_older_alphabet_are_accepted() -> None:
    content = b64encode(json.dumps(CLAIMS | {"sub": "???>>>"}).encode()).decode()
    header = b64encode(json.dumps(NONE).encode()).decode()
    assert UnsecuredValidator({}).validate(f"{header}.{content}.", NOW_MS).name == "???>>>"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (unsigned(sub=None), "no user"),
        (unsigned(sub=" "), "no user"),
        (unsigned(sub=7), "no user"),
        (unsigned(exp=None), "no time of expiry"),
        (unsigned(exp=NOW), "has expired"),
        (unsigned(exp="soon"), "no time"),
        (unsigned(iat=NOW + 1), "issued in the future"),
        (unsigned(exp=NOW + 1, iat=NOW + 1), "issued in the future"),
        (unsigned(scope=7), "no scope"),
        (unsigned({"alg": "HS256"}), "algorithm 'none'"),
        (unsigned({}), "algorithm 'none'"),
        (unsigned([]), "no object"),
        (unsigned() + "AAAA", "algorithm 'none'"),
        (unsigned() + ".", "two parts"),
        ("a.b.", "no JSON"),
        ("..", "two parts"),
        (part("x" * 9).replace("I", "!") + ".e30.", "no JSON"),
    ],
)
def test_odd_token_is_refused(text: str, why: str) -> None:
    assert why in str(refused(text))


def test_deeply_nested_token_is_refused() -> None:
    deep = urlsafe_b64encode(b"[" * 99_999).decode()
    assert "no JSON" in str(refused(f"{deep}.{deep}."))


def test_a_missing_required_scope_is_sent_to_the_client() -> None:
    options = {"unsecuredValidatorRequiredScope": "read write"}
    assert (
        UnsecuredValidator(options).validate(unsigned(scope=["write", "read", "more"]), NOW_MS).name
    )
    error = refused(unsigned(scope=["read"]), **options)
    assert (error.status, error.scope) == ("insufficient_scope", "[read, write]")


def test_options_name_claims_and_skew() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": "email",
        "unsecuredValidatorScopeClaimName": "scp",
        "unsecuredValidatorAllowableClockSkewMs": "2000",
    }
    text = unsigned(email="a@b", scp=["x"], exp=NOW - 1)
    found = UnsecuredValidator(options).validate(text, NOW_MS)
    assert (found.name, found.scope) == ("a@b", frozenset({"x"}))


def test_skew_has_to_be_a_number() -> None:
    with pytest.raises(ConfigError, match="AllowableClockSkewMs"):
        UnsecuredValidator({"unsecuredValidatorAllowableClockSkewMs": "-1"})
