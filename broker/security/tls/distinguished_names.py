"""Names in certificates as text, as Java's `X500Principal.getName()` writes them (RFC 2253).

The last part comes first: C=DE, O=Example, CN=alice becomes `CN=alice,O=Example,C=DE`. Attributes
without a name of their own in RFC 2253 show their number, and the DER of their value in
hexadecimal: `1.2.840.113549.1.9.1=#1613...` is an e-mail address.
"""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from broker.security.tls import pem
from broker.security.tls.store_error import StoreFormatError

_NAMES: Final = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E))
"""Tags of values written as text, as if all were UTF-8: that, printable, T61, IA5, wider ones."""
_LONG_FORM: Final = 0x80


def subject(certificate: bytes) -> str:
    """The name of whom a certificate, in DER, is for. Raises StoreFormatError.

    OpenSSL may have taken one that the library cannot read.
    """
    try:
        return text_of(pem.certificate(certificate).subject)
    except ValueError as error:
        raise StoreFormatError(f"the name in a certificate cannot be read: {error}") from None


def text_of(name: x509.Name) -> str:
    """A name as Java's RFC 2253 text."""
    return ",".join(
        "+".join(_attribute(attribute) for attribute in part) for part in reversed(name.rdns)
    )


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    name = _NAMES.get(attribute.oid)
    encoded = _encoded_value(attribute)
    if name is None or encoded[0] not in _STRINGS:
        return f"{name or attribute.oid.dotted_string}=#{encoded.hex()}"
    return f"{name}={_escaped(encoded[_header_bytes(encoded) :].decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    """Escape special characters with backslashes, and spaces at either end."""
    blanks = len(text) - len(text.lstrip(" \r")), len(text.rstrip(" \r"))
    return "".join(
        f"\\{character}"
        if character in _ESCAPED or not blanks[0] <= position < blanks[1]
        else "\\00"
        if character == "\0"
        else character
        for position, character in enumerate(text)
    )


def _encoded_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """In DER: a name is SEQUENCE { SET { SEQUENCE { OBJECT IDENTIFIER, value } } }."""
    rest = x509.Name([attribute]).public_bytes()
    for _ in range(3):
        rest = rest[_header_bytes(rest) :]
    return rest[_header_bytes(rest) + rest[1] :]


def _header_bytes(element: bytes) -> int:
    """Of the tag and the length."""
    length = element[1]
    return 2 if length < _LONG_FORM else 2 + length - _LONG_FORM
