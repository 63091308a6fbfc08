"""SCRAM credentials: derived as RFC 5802 and 7677 say, written and read as Apache Kafka does."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.security.scram_credentials import (
    MalformedCredentialError,
    ScramMechanism,
    StoredCredential,
    format_credential,
    make_credential,
    parse_credential,
)

RFC_7677_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
BY_KAFKA = (
    "salt=MTIzNA==,stored_key=oQVtKZAxSy5bMwtGaXZzZQ==,server_key=Zm9vYmFyYmF6cXV4MTIzNA==,"
    "iterations=8192"
)


def test_keys_are_those_of_the_example_in_rfc_7677() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", RFC_7677_SALT, 4096)
    credential = make_credential(ScramMechanism.SHA_256, RFC_7677_SALT, salted, 4096)
    assert base64.b64encode(credential.stored_key) == (
        b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    )
    assert base64.b64encode(credential.server_key) == (
        b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def test_keys_are_as_long_as_the_mechanisms_hash() -> None:
    credential = make_credential(ScramMechanism.SHA_512, b"salt", bytes(64), 4096)
    assert len(credential.stored_key) == len(credential.server_key) == 64


def test_what_apache_kafka_wrote_is_read_and_written_the_same() -> None:
    credential = parse_credential(BY_KAFKA)
    assert (credential.salt, credential.iterations) == (b"1234", 8192)
    assert format_credential(credential) == BY_KAFKA


@given(st.binary(), st.binary(min_size=1), st.binary(min_size=1), st.integers(1, 1 << 30))
def test_every_credential_survives_being_stored(
    salt: bytes, stored_key: bytes, server_key: bytes, iterations: int
) -> None:
    credential = StoredCredential(salt, stored_key, server_key, iterations)
    assert parse_credential(format_credential(credential)) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password=c2VjcmV0",
        BY_KAFKA.replace("8192", "many"),
        BY_KAFKA.replace("8192", "0"),
        BY_KAFKA.replace("MTIzNA==", "c2VjcmV0!"),
        BY_KAFKA.replace("stored_key=oQVtKZAxSy5bMwtGaXZzZQ==", "stored_key="),
        f"{BY_KAFKA},salt=MTIzNA==",
        f"{BY_KAFKA},more=1",
    ],
)
def test_what_is_no_credential_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(MalformedCredentialError) as refusal:
        parse_credential(text)
    assert "c2VjcmV0" not in str(refusal.value)
    assert "oQVtKZ" not in str(refusal.value)


def test_a_credential_is_not_shown_where_values_are() -> None:
    assert "1234" not in f"{parse_credential(BY_KAFKA)!r} {parse_credential(BY_KAFKA)}"
