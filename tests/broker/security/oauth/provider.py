"""An identity provider: keys, the document that publishes them, and tokens."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000
CLAIMS = {"sub": "alice", "iat": NOW - 10, "exp": NOW + 100}


def rsa_key(number: int = 1) -> Any:
    """Return one of several RSA keys."""
    return _rsa_key(number)


@cache
def _rsa_key(number: int) -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key() -> Any:
    """Return a key on the curve of ES256."""
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key() -> Any:
    """For EdDSA."""
    return ed25519.Ed25519PrivateKey.generate()


def jwk(key: Any, **members: str) -> dict[str, Any]:
    """A private key's public one, as a JSON Web Key."""
    public = key.public_key()
    algorithm = (
        RSAAlgorithm
        if isinstance(key, rsa.RSAPrivateKey)
        else ECAlgorithm
        if isinstance(key, ec.EllipticCurvePrivateKey)
        else OKPAlgorithm
    )
    content: dict[str, Any] = json.loads(algorithm.to_jwk(public))
    return content | members


def key_set(*keys: Any) -> str:
    """Return the key set that a provider publishes."""
    return json.dumps({"keys": keys})


def token(key: Any, algorithm: str = "RS256", key_id: str | None = "one", **claims: Any) -> str:
    """A token with these claims instead of the usual ones; None leaves one out."""
    content = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    headers = None if key_id is None else {"kid": key_id}
    # By the layer below claims, which refuses none of them.
    return jwt.PyJWS().encode(json.dumps(content).encode(), key, algorithm, headers=headers)
