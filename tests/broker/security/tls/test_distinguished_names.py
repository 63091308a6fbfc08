"""Names as Java writes them: each expectation is what Java 17 printed for the same DER."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from broker.security.tls.distinguished_names import subject, text_of
from broker.security.tls.store_error import StoreFormatError
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

attribute = x509.NameAttribute
CN, O, OU, DC = (  # noqa: E741
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.DOMAIN_COMPONENT,
)

BY_JAVA = [
    (
        [
            attribute(NameOID.COUNTRY_NAME, "DE"),
            attribute(O, "Example, Inc."),
            attribute(CN, "alice"),
        ],
        "CN=alice,O=Example\\, Inc.,C=DE",
    ),
    (
        [
            attribute(DC, "org"),
            attribute(DC, "example"),
            attribute(CN, ' #lead "q" a+b=c;<d>\\ '),
        ],
        'CN=\\ \\#lead \\"q\\" a\\+b\\=c\\;\\<d\\>\\\\\\ ,DC=example,DC=org',
    ),
    (
        [
            attribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
            attribute(NameOID.USER_ID, "u1"),
            attribute(NameOID.STREET_ADDRESS, "s"),
            attribute(NameOID.STATE_OR_PROVINCE_NAME, "Bayern"),
            attribute(NameOID.LOCALITY_NAME, "München"),
            attribute(NameOID.TITLE, "Dr"),
            attribute(NameOID.SERIAL_NUMBER, "12"),
        ],
        (
            "2.5.4.5=#13023132,2.5.4.12=#0c024472,L=München,ST=Bayern,STREET=s,UID=u1,"
            "1.2.840.113549.1.9.1=#16056140622e63"
        ),
    ),
    (
        [attribute(CN, "日本€"), attribute(CN, "x\ty"), attribute(CN, "nul\0z")],
        "CN=nul\\00z,CN=x\ty,CN=日本€",
    ),
    (
        [attribute(CN, "a  b   "), attribute(O, "ia5", _ASN1Type.IA5String)],
        "O=ia5,CN=a  b\\ \\ \\ ",
    ),
]


@pytest.mark.parametrize(("attributes", "text"), BY_JAVA)
def test_a_name_is_written_as_by_java(attributes: list[x509.NameAttribute[str]], text: str) -> None:
    assert text_of(x509.Name(attributes)) == text


def test_a_part_of_several_attributes_keeps_their_order() -> None:
    both = x509.RelativeDistinguishedName([attribute(CN, "a"), attribute(OU, "b")])
    rest = x509.RelativeDistinguishedName([attribute(O, "o")])
    assert text_of(x509.Name([both, rest])) == "O=o,CN=a+OU=b"


def test_long_values_in_hexadecimal_are_whole() -> None:
    name = text_of(x509.Name([attribute(NameOID.TITLE, "x" * 64, _ASN1Type.UTF8String)]))
    assert name == "2.5.4.12=#0c40" + "78" * 64


@pytest.mark.parametrize("damage", [b"", b"0", bytes(100)])
def test_a_malformed_certificate_is_refused(damage: bytes) -> None:
    with pytest.raises(StoreFormatError):
        subject(damage)


def test_the_subject_of_a_certificate_is_whom_it_is_for(tmp_path: Path) -> None:
    certificate = Authority().issue("alice", tmp_path).certificate
    assert subject(certificate.public_bytes(Encoding.DER)) == "CN=alice"
