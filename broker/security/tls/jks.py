"""JKS, the older store format of Java, as keytool writes it.

    u4 0xFEEDFEED | u4 version | u4 count | entries | 20 bytes SHA-1

    private key:  u4 1 | alias | u8 time | u4 length, key | u4 count, certificates
    certificate:  u4 2 | alias | u8 time | certificate
    certificate:  [from version 2 on: u2 length, "X.509"] u4 length, DER
    alias:        u2 length, text

The hash is over the password in UTF-16, the words "Mighty Aphrodite" and all before it; without a
password it is not checked, as in Java. A key is an EncryptedPrivateKeyInfo whose octets are

    salt (20) | PKCS8 xor stream | SHA-1(password + PKCS8) (20)

where the stream is SHA-1(password + salt), SHA-1(password + the 20 bytes before), and so on.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.security.tls import pem
from broker.security.tls.store_error import StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

MAGIC: Final = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_KEY, _CERTIFICATE = 1, 2
_HASH_BYTES = 20
_PHRASE = b"Mighty Aphrodite"
_SEQUENCE, _OCTETS = 0x30, 0x04
_LONG_FORM = 0x80


@dataclass(frozen=True, slots=True, repr=False)
class KeyEntry:
    """A private key, still encrypted, with its certificates."""

    sealed: bytes
    chain: tuple[x509.Certificate, ...]

    def open(self, password: str) -> PrivateKeyTypes:
        """Decrypt the key. Raises StoreFormatError."""
        return pem.private_key(_unsealed(_octets(self.sealed), _utf16(password)))


@dataclass(frozen=True, slots=True, repr=False)
class JksStore:
    """Everything in a store."""

    keys: tuple[KeyEntry, ...]
    certificates: tuple[x509.Certificate, ...]
    """Certificates without a key: the trusted ones."""


def read_jks(content: bytes, password: str | None) -> JksStore:
    """Read a store. Raises StoreFormatError; a wrong password is one such."""
    data, digest = content[:-_HASH_BYTES], content[-_HASH_BYTES:]
    if password is not None:
        expected = _sha1(_utf16(password), _PHRASE, data)
        if not hmac.compare_digest(expected, digest):
            raise StoreFormatError("the password is wrong, or the file damaged")
    reader = _Reader(data)
    if reader.take(len(MAGIC)) != MAGIC:
        raise StoreFormatError("it is not in the format JKS")
    version = reader.number(4)
    if version not in _VERSIONS:
        raise StoreFormatError(f"its version of JKS is {version}, not 1 or 2")
    keys, certificates = [], []
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        reader.take(reader.number(2))
        reader.take(8)
        if kind == _KEY:
            sealed = reader.take(reader.number(4))
            chain = tuple(reader.certificate(version) for _ in range(reader.number(4)))
            keys.append(KeyEntry(sealed, chain))
        elif kind == _CERTIFICATE:
            certificates.append(reader.certificate(version))
        else:
            raise StoreFormatError(f"it has an entry of kind {kind}, which JKS has not")
    return JksStore(tuple(keys), tuple(certificates))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise StoreFormatError("the file ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def certificate(self, version: int) -> x509.Certificate:
        if version > 1:
            self.take(self.number(2))
        return pem.certificate(self.take(self.number(4)))


def _octets(sealed: bytes) -> bytes:
    """The octets of an EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE algorithm, OCTET STRING }."""
    outer = _Reader(_element(_Reader(sealed), _SEQUENCE))
    _element(outer, _SEQUENCE)
    return _element(outer, _OCTETS)


def _element(reader: _Reader, tag: int) -> bytes:
    """The content of the next element of DER."""
    if reader.number(1) != tag:
        raise StoreFormatError("its private key is not encrypted as in JKS")
    length = reader.number(1)
    if length >= _LONG_FORM:
        length = reader.number(length - _LONG_FORM)
    return reader.take(length)


def _unsealed(octets: bytes, password: bytes) -> bytes:
    if len(octets) < 2 * _HASH_BYTES:
        raise StoreFormatError("its private key is too short")
    salt, digest = octets[:_HASH_BYTES], octets[-_HASH_BYTES:]
    plain = bytes(map(int.__xor__, octets[_HASH_BYTES:-_HASH_BYTES], _stream(password, salt)))
    if not hmac.compare_digest(_sha1(password, plain), digest):
        raise StoreFormatError("the password of the private key is wrong")
    return plain


def _stream(password: bytes, salt: bytes) -> Iterator[int]:
    for _ in itertools.count():
        salt = _sha1(password, salt)
        yield from salt


def _sha1(*parts: bytes) -> bytes:
    return hashlib.sha1(b"".join(parts), usedforsecurity=False).digest()


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")
