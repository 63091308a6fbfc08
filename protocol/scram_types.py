"""SCRAM mechanisms and the broker's credentials (RFC 5802, Kafka's `ScramFormatter`)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from enum import IntEnum

MAX_ITERATIONS = 16_384
"""Most iterations that AlterUserScramCredentials accepts."""


class ScramMechanism(IntEnum):
    """A SCRAM mechanism, by its number in requests about users."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """Name in SaslHandshake and in znodes, such as `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """Name of its hash function in `hashlib`."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def min_iterations(self) -> int:
        """Smallest allowed number of iterations."""
        return 4096


BY_NAME = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}


@dataclass(frozen=True, slots=True, repr=False)
class ScramCredential:
    """Verifier of a password, from which the password cannot be recovered."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def salted_password(
    mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int
) -> bytes:
    """The password as SCRAM uses it, of UTF-8. Takes milliseconds: call it on a thread."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, iterations)


def credential_from(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Derive a broker's credential from a salted password."""
    hash_name = mechanism.hash_name
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return ScramCredential(
        salt, stored_key, hmac.digest(salted, b"Server Key", hash_name), iterations
    )
