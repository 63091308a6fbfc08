"""PEM: certificates and keys with anything around them, and what cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from broker.security.tls.pem import certificate, read_certificates, read_private_key
from broker.security.tls.store_error import StoreFormatError
from tests.support.certificates import Authority, key_pem

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.certificates import Issued


@pytest.fixture
def issued(tmp_path: Path) -> Issued:
    return Authority().issue("server", tmp_path)


def test_certificates_keep_their_order(issued: Issued) -> None:
    assert read_certificates(issued.chain_pem()) == tuple(issued.chain)


def test_text_around_and_between_is_passed_over(issued: Issued) -> None:
    text = f"Bag Attributes\n  friendlyName: me\n{issued.key_pem()}subject=CN = server\n"
    text += issued.chain_pem()

    assert read_certificates(text) == tuple(issued.chain)
    assert key_pem(read_private_key(text, None)) == issued.key_pem()


def test_spaces_may_stand_for_line_breaks(issued: Issued) -> None:
    assert read_certificates(issued.chain_pem().replace("\n", " ")) == tuple(issued.chain)
    key = read_private_key(issued.key_pem().replace("\n", " "), None)
    assert key_pem(key) == issued.key_pem()


def test_an_encrypted_key_is_opened_with_its_password(issued: Issued) -> None:
    assert key_pem(read_private_key(issued.key_pem("secret"), "secret")) == issued.key_pem()


@pytest.mark.parametrize(
    ("stored", "given", "reason"),
    [
        ("secret", None, "the private key is encrypted, and there is no password"),
        (None, "secret", "the private key is not encrypted"),
        ("secret", "wrong", "the private key cannot be read, or its password is wrong"),
    ],
)
def test_a_wrong_key_password_is_reported_and_not_shown(
    issued: Issued, stored: str | None, given: str | None, reason: str
) -> None:
    with pytest.raises(StoreFormatError) as refused:
        read_private_key(issued.key_pem(stored), given)

    assert str(refused.value) == reason


def test_a_key_file_has_one_key(issued: Issued) -> None:
    with pytest.raises(StoreFormatError, match="2 private keys"):
        read_private_key(issued.key_pem() * 2, None)
    with pytest.raises(StoreFormatError, match="no private keys"):
        read_private_key(issued.chain_pem(), None)


def test_openssls_older_encryption_is_named() -> None:
    old = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
        "DEK-Info: AES\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"
    )
    with pytest.raises(StoreFormatError, match="convert it to PKCS8"):
        read_private_key(old, "secret")


def test_a_certificate_of_an_unknown_version_is_refused(issued: Issued) -> None:
    der = bytearray(issued.certificate.public_bytes(Encoding.DER))
    der[der.index(b"\xa0\x03\x02\x01\x02") + 4] = 42
    with pytest.raises(StoreFormatError, match="42 is not a valid X509 version"):
        certificate(bytes(der))


@given(st.text(max_size=200), st.binary(max_size=200))
def test_any_text_is_read_or_refused(text: str, content: bytes) -> None:
    import base64

    body = base64.b64encode(content).decode()
    for shown in (text, f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"):
        with pytest.raises(StoreFormatError):
            read_certificates(shown)
    for shown in (text, f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"):
        with pytest.raises(StoreFormatError):
            read_private_key(shown, None)
