"""JSON Web Keys (RFC 7517): the choice of a provider's key to check a token with.

Only asymmetric keys are used. With a symmetric one in a key set, everybody who can read the set
could make tokens, and a public key must never be taken for a secret one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from jwt import PyJWK
from jwt.exceptions import PyJWTError

if TYPE_CHECKING:
    from collections.abc import Iterable

_ALGORITHMS: dict[tuple[object, object], tuple[str, ...]] = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("EC", "secp256k1"): ("ES256K",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""Algorithms of a key, by type and curve."""

ALGORITHMS = frozenset(name for names in _ALGORITHMS.values() for name in names)
"""Algorithms accepted for a token's signature: neither `none` nor one with a shared secret."""


class UnusableKeysError(Exception):
    """A document is not a key set, or has no usable key. The text shows no key."""


class _Key(NamedTuple):
    key_id: str | None
    by_algorithm: dict[str, PyJWK]


class JsonWebKeys:
    """The keys of one provider, at one moment."""

    def __init__(self, keys: Iterable[_Key]) -> None:
        """Use `parse_keys`."""
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """The first key that fits a token's header, which may name no key."""
        for key in self._keys:
            if (key_id is None or key.key_id == key_id) and algorithm in key.by_algorithm:
                return key.by_algorithm[algorithm]
        return None


NO_KEYS = JsonWebKeys(())


def parse_keys(text: str | bytes) -> JsonWebKeys:
    """Read a key set; keys of other kinds are passed over. Raises UnusableKeysError."""
    try:
        found = json.loads(text)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnusableKeysError("this is no JSON Web Key Set") from None
    keys = [_key(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    usable = [key for key in keys if key.by_algorithm]
    if not usable:
        raise UnusableKeysError(f"none of {len(keys)} keys can check a signature")
    return JsonWebKeys(usable)


def _key(jwk: dict[str, Any]) -> _Key:
    kind = (jwk.get("kty"), None if jwk.get("kty") == "RSA" else jwk.get("crv"))
    possible = _ALGORITHMS.get(kind, ()) if all(isinstance(x, str | None) for x in kind) else ()
    stated = jwk.get("alg")
    if jwk.get("use", "sig") != "sig":
        possible = ()
    by_algorithm = {}
    for name in possible if stated is None else set(possible) & {stated}:
        try:
            by_algorithm[name] = PyJWK(jwk, name)
        except (PyJWTError, ValueError, TypeError, KeyError):  # it cannot be used: passed over
            continue
    key_id = jwk.get("kid")
    return _Key(key_id if isinstance(key_id, str) else None, by_algorithm)
