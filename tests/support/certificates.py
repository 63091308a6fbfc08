"""Certificates for tests: an authority, and what it issues, in every format of store.

    authority = Authority()
    server = authority.issue("localhost", directory)
    config = server.as_keystore("PKCS12") | authority.as_truststore(directory, "PEM")

Keys are on an elliptic curve, since one of RSA takes a tenth of a second to make. All files have
the password `PASSWORD`.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

PASSWORD = "storepass"
HOSTS = ("localhost", "127.0.0.1")
VALID = (
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2100, 1, 1, tzinfo=dt.UTC),
)
EXPIRED = (VALID[0], dt.datetime(2020, 2, 1, tzinfo=dt.UTC))


SIGNING = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Issued:
    """A key with the certificates that vouch for it, and files with both."""

    key: PrivateKey
    chain: Sequence[x509.Certificate]
    """Its own certificate first."""
    directory: Path
    name: str

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    def key_pem(self, password: str | None = None) -> str:
        return key_pem(self.key, password)

    def chain_pem(self) -> str:
        return "".join(certificate_pem(one) for one in self.chain)

    def key_file(self) -> Path:
        """The key alone, as PEM without a password, for clients of OpenSSL."""
        return self._write("key.pem", self.key_pem())

    def chain_file(self) -> Path:
        """The certificates alone, as PEM."""
        return self._write("chain.pem", self.chain_pem())

    def pem(self, password: str | None = None) -> Path:
        """Key and certificates in one file, as Apache's PEM keystore wants them."""
        return self._write("store.pem", self.key_pem(password) + self.chain_pem())

    def pkcs12(self) -> Path:
        stored = pkcs12.serialize_key_and_certificates(
            self.name.encode(),
            self.key,
            self.certificate,
            self.chain[1:],
            BestAvailableEncryption(PASSWORD.encode()),
        )
        return self._write("store.p12", stored)

    def jks(self) -> Path:
        """Converted by keytool, which takes a second."""
        target = self.directory / f"{self.name}.store.jks"
        if not target.exists():
            source = ("-srckeystore", str(self.pkcs12()), "-srcstoretype", "PKCS12")
            wanted = ("-destkeystore", str(target), "-deststoretype", "JKS")
            passwords = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
            keytool("-importkeystore", *source, *wanted, *passwords)
        return target

    def store(self, kind: str) -> Path:
        """Return a store of type JKS, PKCS12 or PEM."""
        return {"JKS": self.jks, "PKCS12": self.pkcs12, "PEM": self.pem}[kind]()

    def as_keystore(self, kind: str = "PKCS12") -> dict[str, str]:
        """The keys of Apache's configuration, of brokers and clients, that name it."""
        keys = {"ssl.keystore.type": kind, "ssl.keystore.location": str(self.store(kind))}
        if kind != "PEM":
            keys |= {"ssl.keystore.password": PASSWORD, "ssl.key.password": PASSWORD}
        return keys

    def _write(self, suffix: str, content: str | bytes) -> Path:
        target = self.directory / f"{self.name}.{suffix}"
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target


class Authority:
    """Issues certificates; those who trust it believe them."""

    def __init__(self, name: str = "Test Authority") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        authority = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self.key, VALID)
        builder = builder.add_extension(authority, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        builder = builder.add_extension(SIGNING, critical=True)
        self.certificate = builder.sign(self.key, hashes.SHA256())

    def issue(
        self,
        name: str | x509.Name,
        directory: Path,
        *,
        hosts: Sequence[str] = HOSTS,
        valid: tuple[dt.datetime, dt.datetime] = VALID,
        is_rsa: bool = False,
    ) -> Issued:
        """A key, and a certificate for servers and clients; `name` is its common name."""
        key: PrivateKey = ec.generate_private_key(ec.SECP256R1())
        if is_rsa:
            key = rsa.generate_private_key(65537, 2048)
        subject = name
        if isinstance(subject, str):
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = _builder(subject, self._name, key, valid)
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(of_issuer, critical=False)
        usage = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        stem = name if isinstance(name, str) else "named"
        return Issued(key, (certificate, self.certificate), directory, stem)

    def pem(self) -> str:
        return certificate_pem(self.certificate)

    def pem_file(self, directory: Path) -> Path:
        target = directory / "authority.pem"
        target.write_text(self.pem())
        return target

    def pkcs12(self, directory: Path) -> Path:
        """Return a PKCS12 store with the attribute by which Java trusts a certificate."""
        target = directory / "authority.p12"
        entry = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        encryption = BestAvailableEncryption(PASSWORD.encode())
        target.write_bytes(pkcs12.serialize_java_truststore([entry], encryption))
        return target

    def jks(self, directory: Path) -> Path:
        """Made by keytool, which takes a second."""
        target = directory / "authority.jks"
        if not target.exists():
            source = ("-file", str(self.pem_file(directory)), "-alias", "authority")
            wanted = ("-keystore", str(target), "-storetype", "JKS", "-storepass", PASSWORD)
            keytool("-importcert", "-noprompt", *source, *wanted)
        return target

    def as_truststore(self, directory: Path, kind: str = "PKCS12") -> dict[str, str]:
        """The keys of Apache's configuration, of brokers and clients, that name it."""
        made = {"JKS": self.jks, "PKCS12": self.pkcs12, "PEM": self.pem_file}[kind](directory)
        keys = {"ssl.truststore.type": kind, "ssl.truststore.location": str(made)}
        if kind != "PEM":
            keys["ssl.truststore.password"] = PASSWORD
        return keys


def certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def key_pem(key: PrivateKeyTypes, password: str | None = None) -> str:
    """Return the key in PKCS8, the only form that Java reads."""
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def keytool(*arguments: str) -> None:
    subprocess.run(("keytool", *arguments), check=True, capture_output=True, timeout=60)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: PrivateKey,
    valid: tuple[dt.datetime, dt.datetime],
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, subject, key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(valid[0]).not_valid_after(valid[1])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
