"""Unsecured tokens (RFC 7515, appendix A.5), which anyone can create.

Apache Kafka's default, meant for tests: the broker believes what the client says. The options of
the login module name the claims (`OAuthBearerUnsecuredValidatorCallbackHandler`).
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any

from broker.security.oauth.bearer_token import BearerToken, InvalidTokenError
from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "unsecuredValidator"
PARTS = 3


class UnsecuredValidator:
    """Checks form and time, and nothing else."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raises ConfigError."""
        self._name_claim = options.get(f"{PREFIX}PrincipalClaimName", "").strip() or "sub"
        self._scope_claim = options.get(f"{PREFIX}ScopeClaimName", "").strip() or "scope"
        self._required_scope = options.get(f"{PREFIX}RequiredScope", "").split()
        skew = options.get(f"{PREFIX}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise ConfigError(f"{PREFIX}AllowableClockSkewMs is no number of milliseconds")
        self._skew_ms = int(skew)

    def validate(self, token: str, now_ms: int) -> BearerToken:
        """The token, taken apart. Raises InvalidTokenError."""
        claims = _claims(token)
        name = claims.get(self._name_claim)
        if not isinstance(name, str) or not name.strip():
            raise InvalidTokenError(f"the token has no user in the claim {self._name_claim!r}")
        issued_at, expiry = _number(claims, "iat"), _number(claims, "exp")
        if expiry is None:
            raise InvalidTokenError("the token has no time of expiry")
        if issued_at is not None and 1000 * issued_at > now_ms + self._skew_ms:
            raise InvalidTokenError("the token is issued in the future")
        if now_ms - self._skew_ms >= 1000 * expiry:
            raise InvalidTokenError("the token has expired")
        if issued_at is not None and expiry <= issued_at:
            raise InvalidTokenError("the token expires before it is issued")
        return BearerToken(name, round(1000 * expiry), self._checked_scope(claims))

    def _checked_scope(self, claims: Mapping[str, Any]) -> frozenset[str]:
        value = claims.get(self._scope_claim, [])
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            raise InvalidTokenError(f"the claim {self._scope_claim!r} is no scope")
        scope = frozenset(str(one).strip() for one in value if str(one).strip())
        if any(one not in scope for one in self._required_scope):
            required = f"[{', '.join(self._required_scope)}]"
            raise InvalidTokenError(f"the token's scope lacks some of {required}", required)
        return scope


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != PARTS or ".." in token:
        raise InvalidTokenError("an unsecured token has two parts with a dot after each")
    header, claims = _decoded(parts[0]), _decoded(parts[1])
    if header.get("alg") != "none" or parts[2]:
        raise InvalidTokenError("an unsecured token has the algorithm 'none' and no signature")
    return claims


def _decoded(part: str) -> dict[str, Any]:
    try:
        padded = part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4)
        content = json.loads(urlsafe_b64decode(padded.replace("+", "-").replace("/", "_")))
    except (ValueError, RecursionError) as error:
        raise InvalidTokenError("the token holds no JSON") from error
    if not isinstance(content, dict):
        raise InvalidTokenError("the token holds JSON that is no object")
    return content


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:  # noqa: PLR2004
        raise InvalidTokenError(f"the claim {name!r} is no time")
    return float(value)
