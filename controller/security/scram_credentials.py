"""SCRAM credentials as Apache Kafka keeps them: a text under the mechanism's name, by user.

    SCRAM-SHA-256  →  salt=<base64>,stored_key=<base64>,server_key=<base64>,iterations=4096

The keys are derived from the salted password (RFC 5802, section 3), which a client sends instead of
the password; it is neither kept nor shown, and nor are they.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from enum import Enum
from typing import NamedTuple

MOST_ITERATIONS = 16_384
"""More are refused, as Apache Kafka does: they are work that the client has at each connection."""

_FIELDS = ("salt", "stored_key", "server_key", "iterations")
_HIGHEST_ITERATIONS = (1 << 31) - 1


class ScramMechanism(Enum):
    """The mechanisms, by their code in requests and their name in everything else."""

    SHA_256 = (1, "SCRAM-SHA-256", "sha256", 4096)
    SHA_512 = (2, "SCRAM-SHA-512", "sha512", 4096)

    def __init__(self, code: int, mechanism_name: str, digest: str, least_iterations: int) -> None:
        """With the name of its hash function, and the fewest iterations that are accepted."""
        self.code = code
        self.mechanism_name = mechanism_name
        self.digest = digest
        self.least_iterations = least_iterations


MECHANISM_BY_CODE = {mechanism.code: mechanism for mechanism in ScramMechanism}
MECHANISM_NAMES = tuple(mechanism.mechanism_name for mechanism in ScramMechanism)


class MalformedCredentialError(Exception):
    """A stored credential is unreadable. The text is not in the message."""


class StoredCredential(NamedTuple):
    """What the broker needs to check a client's proof, and to prove itself."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Without the secrets: it may come into a log line."""
        return f"StoredCredential({self.iterations} iterations)"


def make_credential(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> StoredCredential:
    """Derive a credential from a salted password."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.digest)
    return StoredCredential(salt, stored_key, server_key, iterations)


def format_credential(credential: StoredCredential) -> str:
    """Write a credential as it is stored."""
    salt, stored_key, server_key = (base64.b64encode(part).decode() for part in credential[:3])
    return (
        f"salt={salt},stored_key={stored_key},server_key={server_key},"
        f"iterations={credential.iterations}"
    )


def parse_credential(text: str) -> StoredCredential:
    """Read a stored credential, its fields in any order. Raises MalformedCredentialError."""
    pairs = [part.partition("=") for part in text.split(",")]
    fields = {name: value for name, _, value in pairs}
    if len(pairs) != len(_FIELDS) or sorted(fields) != sorted(_FIELDS):
        raise MalformedCredentialError(f"a credential has the fields {', '.join(_FIELDS)}")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
        )
        iterations = int(fields["iterations"])
    except (binascii.Error, ValueError):
        raise MalformedCredentialError("a field of the credential is unreadable") from None
    if not 1 <= iterations <= _HIGHEST_ITERATIONS or not stored_key or not server_key:
        raise MalformedCredentialError("the credential has no keys or no iterations")
    return StoredCredential(salt, stored_key, server_key, iterations)
