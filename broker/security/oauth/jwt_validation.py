"""JSON Web Tokens (RFC 7519): the signature by PyJWT, the claims by the rules of Apache Kafka.

Those are the rules of jose4j, as `BrokerJwtValidator` sets them: a token must have `exp` and `iat`;
one that names an audience is refused unless that is expected; `iat` may lie in the future.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jwt import PyJWS, get_unverified_header
from jwt.exceptions import PyJWTError

from broker.security.oauth.bearer_token import BearerToken, InvalidTokenError
from broker.security.oauth.jwks import ALGORITHMS

if TYPE_CHECKING:
    from jwt import PyJWK

    from broker.runtime.deferred import Deferred

PARTS = 3
LONGEST_SHOWN = 100
"""Characters of a stranger's input that a log line shows."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """Required claims of a token. A claim is a name and a value."""

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    """None: any issuer."""
    clock_skew_seconds: int = 30
    scope_claim: str = "scope"
    name_claim: str = "sub"
    """The claim that holds the name of the user."""


class SigningKeys(Protocol):
    """The keys of the provider."""

    def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """The one that checks a token with this header; None if there is none now."""

    def when_loaded(self) -> Deferred[None] | None:
        """None if they were loaded; else comes when they are, or fails with InvalidTokenError."""


class JwtValidator:
    """Checks tokens against keys and expectations."""

    def __init__(self, keys: SigningKeys, expected: Expectations) -> None:
        self._keys = keys
        self._expected = expected
        self._signatures = PyJWS()

    def validate(self, token: str, now_ms: int) -> BearerToken | Deferred[BearerToken]:
        """The token, taken apart. Raises InvalidTokenError."""
        waiting = self._keys.when_loaded()
        if waiting is None:
            return self._validated(token, now_ms)
        return waiting.map(lambda _: self._validated(token, now_ms))

    def _validated(self, token: str, now_ms: int) -> BearerToken:
        claims = self._signed_claims(token)
        expected = self._expected
        _require_text(claims, ("iss", "sub", "jti"))
        expiry = _check_times(claims, now_ms // 1000, expected.clock_skew_seconds)
        _check_audience(claims.get("aud"), expected.audiences)
        if expected.issuer is not None and claims.get("iss") != expected.issuer:
            raise InvalidTokenError(f"the token is of another issuer: {_shown(claims.get('iss'))}")
        name = claims.get(expected.name_claim)
        if not isinstance(name, str) or not name.strip():
            raise InvalidTokenError(f"the token has no user in the claim {expected.name_claim!r}")
        scope = _scope(claims.get(expected.scope_claim))
        return BearerToken(name.strip(), 1000 * expiry, scope)

    def _signed_claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that was signed by the provider."""
        if not all(token.split(".")) or token.count(".") != PARTS - 1:
            raise InvalidTokenError("a token has three parts with dots between them")
        try:
            header = get_unverified_header(token)
            key_id, algorithm = header.get("kid"), header.get("alg")
            if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
                raise InvalidTokenError(f"a token must not be signed with {_shown(algorithm)}")
            key = self._keys.find(key_id, algorithm)
            if key is None:
                raise InvalidTokenError(f"there is no key {_shown(key_id)} for {algorithm}")
            payload = self._signatures.decode(token, key, algorithms=[algorithm])
            claims = json.loads(payload)
        except PyJWTError as error:
            raise InvalidTokenError(f"the token cannot be trusted: {_shown(str(error))}") from None
        except (ValueError, RecursionError):
            raise InvalidTokenError("the token holds no JSON") from None
        if not isinstance(claims, dict):
            raise InvalidTokenError("the token holds JSON that is no object")
        return claims


def _require_text(claims: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if not isinstance(claims.get(name), str | None):
            raise InvalidTokenError(f"the claim {name!r} is no text")


def _check_times(claims: dict[str, Any], now: int, skew: int) -> int:
    """Compare with the clock, in seconds; returns when the token expires."""
    expiry, issued_at, not_before = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
    if expiry is None or issued_at is None:
        raise InvalidTokenError("a token must say when it was issued and when it expires")
    if now - skew >= expiry:
        raise InvalidTokenError(f"the token has expired {now - expiry} s ago")
    if expiry < issued_at or (not_before is not None and expiry < not_before):
        raise InvalidTokenError("the token expires before it is valid")
    if not_before is not None and now + skew < not_before:
        raise InvalidTokenError(f"the token is valid only in {not_before - now} s")
    return expiry


def _seconds(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:  # noqa: PLR2004
        raise InvalidTokenError(f"the claim {name!r} is no time")
    return int(value)


def _check_audience(claim: object, expected: frozenset[str]) -> None:
    """Refuse a token for another audience, or for none if one is expected."""
    named = [claim] if isinstance(claim, str) else claim
    if named is None:
        named = []
        if not expected:
            return
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise InvalidTokenError("the claim 'aud' is no text")
    if expected.isdisjoint(named):
        raise InvalidTokenError(f"the token is for another audience: {_shown(claim)}")


def _scope(claim: object) -> frozenset[str]:
    listed = [claim] if isinstance(claim, str) else claim
    if not isinstance(listed, list):
        return frozenset()
    texts = [one.strip() if isinstance(one, str) else "" for one in listed]
    if not all(texts) or len(set(texts)) != len(texts):
        raise InvalidTokenError("the token's scope is empty, or named twice")
    return frozenset(texts)


def _shown(value: object) -> str:
    return repr(value)[:LONGEST_SHOWN]
