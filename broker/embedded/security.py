"""TLS and SASL for the clients of an embedded broker: certificates and a user, its own alone."""

from __future__ import annotations

import dataclasses
import datetime as dt
import ipaddress
import secrets
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from broker.embedded.machine.reserved_port import HOST
from broker.runtime.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from broker.embedded.settings import Protocol

USER: Final = "test"
MECHANISM: Final = "PLAIN"
VALID_DAYS: Final = 3650  # a clock that the test turns may be years ahead
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclasses.dataclass(frozen=True, slots=True)
class Security:
    """Security settings for clients."""

    protocol: str
    """As Kafka calls it: `SASL_SSL`, say."""
    ca_file: str | None
    """The certificate to trust, as PEM; None without TLS."""
    broker_file: str | None
    """The broker's key and certificates."""
    username: str | None
    """None without SASL."""
    password: str | None

    @property
    def broker_keys(self) -> dict[str, str]:
        """Keys of the broker's property file, besides its listeners."""
        keys: dict[str, str] = {}
        if self.broker_file is not None:
            keys |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.broker_file}
        if self.username is not None:
            listener = f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config"
            user = f'user_{self.username}="{self.password}"'
            keys |= {"sasl.enabled.mechanisms": MECHANISM, listener: f"{_PLAIN} required {user};"}
        return keys

    @property
    def client_keys(self) -> dict[str, str]:
        """Configuration for a client of librdkafka (confluent-kafka)."""
        keys = {"security.protocol": self.protocol}
        if self.ca_file is not None:
            keys["ssl.ca.location"] = self.ca_file
        if self.username is not None and self.password is not None:
            keys |= {
                "sasl.mechanism": MECHANISM,
                "sasl.username": self.username,
                "sasl.password": self.password,
            }
        return keys

    @property
    def kafka_python_keys(self) -> dict[str, str]:
        """Constructor arguments for a client of kafka-python."""
        keys = {"security_protocol": self.protocol}
        if self.ca_file is not None:
            keys["ssl_cafile"] = self.ca_file
        if self.username is not None and self.password is not None:
            keys |= {
                "sasl_mechanism": MECHANISM,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return keys


def make_security(protocol: Protocol, directory: Path) -> Security:
    """Create the certificates and credentials, in a directory of the broker's."""
    ca_file = broker_file = password = None
    if protocol.endswith("ssl"):
        ca_file, broker_file = _certificates(directory)
    if protocol.startswith("sasl"):
        password = secrets.token_urlsafe(16)
    username = None if password is None else USER
    return Security(protocol.upper(), ca_file, broker_file, username, password)


def _certificates(directory: Path) -> tuple[str, str]:
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _signed("embedded Kafka CA", authority_key, None, authority_key)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(HOST, key, authority, authority_key)
    ca_file, broker_file = directory / "ca.pem", directory / "broker.pem"
    ca_file.write_bytes(_pem(authority))
    broker_file.touch(mode=0o600)
    unsealed = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    broker_file.write_bytes(unsealed + _pem(certificate) + _pem(authority))
    return str(ca_file), str(broker_file)


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """A certificate that also strict verifiers take (RFC 5280), of an authority or a broker."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.fromtimestamp(SystemClock().now_ms() / 1000, dt.UTC)
    is_authority = issuer is None
    key_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(is_authority, path_length=None), critical=True)
        .add_extension(_usage(is_authority=is_authority), critical=True)
        .add_extension(key_id, critical=False)
        .add_extension(issuer_id, critical=False)
    )
    if not is_authority:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
