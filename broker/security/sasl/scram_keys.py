"""Proofs of each side of SCRAM that it knows the password (RFC 5802, section 3).

    client proof      = client key XOR HMAC(stored key, auth message)
    stored key        = H(client key)
    server signature  = HMAC(server key, auth message)

The server has the stored key and not the client key, so it recovers the client key from the proof
and compares its hash.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from protocol.scram_types import ScramCredential, ScramMechanism


def is_proved(
    mechanism: ScramMechanism, credential: ScramCredential, said: bytes, proof: bytes
) -> bool:
    """Return whether the proof shows knowledge of the password."""
    signature = hmac.digest(credential.stored_key, said, mechanism.hash_name)
    if len(proof) != len(signature):
        return False
    client_key = _xor(signature, proof)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return hmac.compare_digest(stored_key, credential.stored_key)


def proof_of(mechanism: ScramMechanism, salted: bytes, said: bytes) -> bytes:
    """The client's proof, with the salted password."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return _xor(client_key, hmac.digest(stored_key, said, mechanism.hash_name))


def signature_of(mechanism: ScramMechanism, server_key: bytes, said: bytes) -> bytes:
    """The server's."""
    return hmac.digest(server_key, said, mechanism.hash_name)


def _xor(first: bytes, second: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(first, second, strict=True))
