"""The key store and the trust store of a configuration, whatever their format.

As in Java, type JKS reads PKCS12 too and the reverse, since files identify their own format.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import pkcs12

from broker.security.tls import jks
from broker.security.tls.pem import read_certificates, read_private_key
from broker.security.tls.store_error import StoreFormatError
from config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    from config.broker import BrokerConfig

PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
LARGEST_BYTES = 16 << 20
"""Of a file. Fixed: a store is some kilobytes, and reading a disk by mistake must end."""

Certificates = tuple["x509.Certificate", ...]


@dataclass(frozen=True, slots=True, repr=False)
class Identity:
    """Identity of a broker: its private key and certificate chain."""

    key: PrivateKeyTypes
    chain: Certificates
    """Its own certificate first, then its issuer's, and so on."""


class _Store(NamedTuple):
    """Location of a configured store; `key` and `certificates` are PEM in the key itself.

    `name` is `ssl.keystore` or `ssl.truststore`.
    """

    name: str
    type: str
    location: str | None
    password: str | None
    certificates: str | None
    key: str | None = None

    @property
    def where(self) -> str:
        """The key of the configuration to look at."""
        if self.location is not None:
            return f"{self.name}.location"
        if self.certificates is None:
            return f"{self.name}.type"
        is_key_store = self.name == "ssl.keystore"
        return f"{self.name}.{'certificate.chain' if is_key_store else 'certificates'}"


def read_identity(config: BrokerConfig) -> Identity | None:
    """Contents of the key store; None without one. Raises ConfigError."""
    store = _key_store(config)
    _refuse_contradictions(store)
    with _naming(store):
        if store.key is not None and store.certificates is not None:
            return _pem_identity(store.key, store.certificates, config.ssl_key_password)
        if store.location is None:
            return None
        content = _content(store, store.location)
        if store.type == PEM:
            text = content.decode("utf-8", "replace")
            return _pem_identity(text, text, config.ssl_key_password)
        password = store.password or ""
        if content.startswith(jks.MAGIC):
            of_key = config.ssl_key_password
            return _jks_identity(content, password, password if of_key is None else of_key)
        return _pkcs12_identity(content, password)


def read_trusted(config: BrokerConfig) -> Certificates | None:
    """Contents of the trust store; None without one. Raises ConfigError."""
    store = _trust_store(config)
    _refuse_contradictions(store)
    with _naming(store):
        if store.certificates is not None:
            return read_certificates(store.certificates)
        if store.location is None:
            return None
        content = _content(store, store.location)
        if store.type == PEM:
            return read_certificates(content.decode("utf-8", "replace"))
        if content.startswith(jks.MAGIC):
            return _some(jks.read_jks(content, store.password).certificates)
        stored = _pkcs12(content, store.password)
        return _some(one.certificate for one in stored.additional_certs)


def store_files(config: BrokerConfig) -> tuple[Path, ...]:
    """The files with this configuration's stores."""
    locations = (config.ssl_keystore_location, config.ssl_truststore_location)
    return tuple(Path(location) for location in locations if location is not None)


def _key_store(config: BrokerConfig) -> _Store:
    return _Store(
        "ssl.keystore",
        config.ssl_keystore_type,
        config.ssl_keystore_location,
        config.ssl_keystore_password,
        config.ssl_keystore_certificate_chain,
        config.ssl_keystore_key,
    )


def _trust_store(config: BrokerConfig) -> _Store:
    return _Store(
        "ssl.truststore",
        config.ssl_truststore_type,
        config.ssl_truststore_location,
        config.ssl_truststore_password,
        config.ssl_truststore_certificates,
    )


def _refuse_contradictions(store: _Store) -> None:
    """Refuse what Apache's DefaultSslEngineFactory refuses. Raises ConfigError."""
    name, is_key_store = store.name, store.name == "ssl.keystore"
    is_in_key = store.certificates is not None or store.key is not None
    reason = None
    if store.type.upper() not in (PEM, JKS, PKCS12):
        reason = f"{name}.type is {store.type}; PEM, JKS and PKCS12 can be read"
    elif is_in_key and store.type != PEM:
        reason = (
            f"keys and certificates in the configuration are PEM, but {name}.type is {store.type}"
        )
    elif is_in_key and store.location is not None:
        reason = f"{name}.location is set, and certificates or a key beside it"
    elif is_key_store and (store.key is None) != (store.certificates is None):
        reason = "ssl.keystore.key and ssl.keystore.certificate.chain need each other"
    elif store.type == PEM and store.password is not None:
        reason = f"{name}.password cannot be set with PEM, whose keys have ssl.key.password"
    elif store.location is None and store.password is not None:
        reason = f"{name}.password is set, but not {name}.location"
    elif is_key_store and store.location and store.type != PEM and store.password is None:
        reason = f"{name}.location is set, but not {name}.password"
    if reason is not None:
        raise ConfigError(f"TLS: {reason}", store.where)


def _content(store: _Store, location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{store.where}: {location}: {reason}", store.where) from None
    if len(content) > LARGEST_BYTES:
        raise ConfigError(f"{store.where}: {location} is too large for a store", store.where)
    return content


@contextlib.contextmanager
def _naming(store: _Store) -> Iterator[None]:
    """Name the store in an error, as ConfigError."""
    try:
        yield
    except StoreFormatError as error:
        where = "its value" if store.location is None else store.location
        raise ConfigError(f"{store.where}: {where}: {error}", store.where) from None


def _pem_identity(key: str, chain: str, password: str | None) -> Identity:
    return Identity(read_private_key(key, password), read_certificates(chain))


def _jks_identity(content: bytes, password: str, of_key: str) -> Identity:
    store = jks.read_jks(content, password)
    if not store.keys:
        raise StoreFormatError("it has no private key")
    entry = store.keys[0]
    return Identity(entry.open(of_key), entry.chain)


def _pkcs12_identity(content: bytes, password: str) -> Identity:
    stored = _pkcs12(content, password)
    if stored.key is None or stored.cert is None:
        raise StoreFormatError("it has no private key with a certificate")
    others = [one.certificate for one in stored.additional_certs]
    return Identity(stored.key, _chain(stored.cert.certificate, others))


def _pkcs12(content: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise StoreFormatError("the password is wrong, or the file is not PKCS12") from None


def _chain(own: x509.Certificate, others: Iterable[x509.Certificate]) -> Certificates:
    """Order certificates from each to its issuer; those outside that chain are left out."""
    by_subject = {one.subject: one for one in others}
    chain = [own]
    while (issuer := by_subject.pop(chain[-1].issuer, None)) is not None and issuer != chain[-1]:
        chain.append(issuer)
    return tuple(chain)


def _some(certificates: Iterable[x509.Certificate]) -> Certificates:
    found = tuple(certificates)
    if not found:
        raise StoreFormatError("it has no trusted certificate")
    return found
