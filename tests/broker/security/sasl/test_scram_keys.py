"""Proofs, by the example of RFC 7677."""

from __future__ import annotations

import base64

from broker.security.sasl.scram_keys import is_proved, proof_of, signature_of
from protocol.scram_types import ScramMechanism, credential_from, salted_password

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SAID = (
    f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={NONCE}"
).encode()
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SHA_256 = ScramMechanism.SCRAM_SHA_256
SALTED = salted_password(SHA_256, b"pencil", SALT, 4096)
CREDENTIAL = credential_from(SHA_256, SALTED, SALT, 4096)


def test_the_proof_is_that_of_the_rfc() -> None:
    assert proof_of(SHA_256, SALTED, SAID) == PROOF
    assert is_proved(SHA_256, CREDENTIAL, SAID, PROOF)


def test_the_signature_is_that_of_the_rfc() -> None:
    signature = signature_of(SHA_256, CREDENTIAL.server_key, SAID)

    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_proof_of_another_message_is_invalid() -> None:
    assert not is_proved(SHA_256, CREDENTIAL, SAID + b"x", PROOF)
    assert not is_proved(SHA_256, CREDENTIAL, SAID, PROOF[:-1])
    assert not is_proved(SHA_256, CREDENTIAL, SAID, b"")
    assert not is_proved(SHA_256, CREDENTIAL, SAID, bytes(len(PROOF)))
