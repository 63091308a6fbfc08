"""PEM text: certificates and a private key, with anything around them.

As in a file, or as the value of a key, where spaces may stand for line breaks.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_der_private_key

from broker.security.tls.store_error import StoreFormatError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_HEADERS = re.compile(r"^[^:\r\n]*:[^\r\n]*$", re.MULTILINE)
_ENCRYPTED_OTHERWISE = "Proc-Type:"
"""Header of OpenSSL's older encryption, which only its own form of key has."""


def read_certificates(text: str) -> tuple[x509.Certificate, ...]:
    """All certificates, in their order. Raises StoreFormatError, also if there is none."""
    found = tuple(certificate(der) for der in _blocks(text, "CERTIFICATE"))
    if not found:
        raise StoreFormatError("it has no certificate, as PEM")
    return found


def read_private_key(text: str, password: str | None) -> PrivateKeyTypes:
    """The only private key. Raises StoreFormatError."""
    found = _blocks(text, "PRIVATE KEY")
    if len(found) != 1:
        raise StoreFormatError(f"it has {len(found) or 'no'} private keys, as PEM, not one")
    return private_key(found[0], password)


def certificate(der: bytes) -> x509.Certificate:
    """Read one. Raises StoreFormatError."""
    try:
        return x509.load_der_x509_certificate(der)
    except (ValueError, x509.InvalidVersion) as error:
        raise StoreFormatError(f"a certificate cannot be read: {error}") from None


def private_key(der: bytes, password: str | None = None) -> PrivateKeyTypes:
    """Read a key in PKCS8, encrypted if there is a password. Raises StoreFormatError."""
    try:
        return load_der_private_key(der, None if password is None else password.encode())
    except TypeError:
        given = "is encrypted, and there is no password" if password is None else "is not encrypted"
        raise StoreFormatError(f"the private key {given}") from None
    except (ValueError, UnsupportedAlgorithm):
        wrong = "" if password is None else ", or its password is wrong"
        raise StoreFormatError(f"the private key cannot be read{wrong}") from None


def _blocks(text: str, kind: str) -> list[bytes]:
    """Contents of the blocks whose name ends with `kind`."""
    return [_decoded(content) for name, content in _BLOCK.findall(text) if name.endswith(kind)]


def _decoded(content: str) -> bytes:
    if _ENCRYPTED_OTHERWISE in content:
        raise StoreFormatError("its key is encrypted as OpenSSL once did; convert it to PKCS8")
    try:
        return base64.b64decode("".join(_HEADERS.sub("", content).split()), validate=True)
    except (binascii.Error, ValueError):
        raise StoreFormatError("what stands in a PEM block is not Base64") from None
