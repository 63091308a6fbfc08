"""TLS context of one listener: read from its stores, checked, immutable."""

from __future__ import annotations

import dataclasses
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.security.tls.contexts import client_context, refuse_unless_they_agree, server_context
from broker.security.tls.identity_changes import refuse_another_identity
from broker.security.tls.principal_rules import PrincipalMapping
from broker.security.tls.stores import read_identity, store_files
from config.errors import ConfigError
from config.keys.tls import TlsKeys
from config.listeners.listener_config import for_listener, prefix_of

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography import x509

    from config.broker import BrokerConfig

Stamps = tuple[tuple[int, int] | None, ...]
"""Time of change and size of each store's file."""


@dataclass(frozen=True, slots=True)
class ListenerName:
    """Name and role of a listener."""

    name: str
    has_sasl: bool
    is_inter_broker: bool
    """True if brokers connect to it, so that they must accept each other's certificates."""


@dataclass(frozen=True, slots=True, repr=False)
class ListenerContext:
    """The contexts of one listener."""

    config: BrokerConfig
    """As the listener has it."""
    server: ssl.SSLContext
    client: ssl.SSLContext | None
    """For connections to the same listener of other brokers; None if they have another one."""
    certificate: x509.Certificate
    mapping: PrincipalMapping
    stamps: Stamps

    def is_outdated(self) -> bool:
        """Return whether a store's file has changed since."""
        return self.stamps != stamps_of(store_files(self.config))


def load(
    config: BrokerConfig, listener: ListenerName, old: ListenerContext | None = None
) -> ListenerContext:
    """Read the stores. Raises ConfigError, also if it may not take the place of `old`.

    Call it on a thread. `config` is the broker's.
    """
    own_config = for_listener(config, listener.name)
    try:
        return _loaded(own_config, listener, old)
    except ConfigError as error:
        raise ConfigError(f"listener {listener.name}: {error}", *error.keys) from None
    except ValueError as error:  # a name or an extension is only parsed on access
        why = f"a certificate cannot be read: {error}"
        raise ConfigError(f"listener {listener.name}: {why}", "ssl.keystore.location") from None


def _loaded(
    own_config: BrokerConfig, listener: ListenerName, old: ListenerContext | None
) -> ListenerContext:
    stamps = stamps_of(store_files(own_config))
    identity = read_identity(own_config)
    server = server_context(own_config, identity, _client_auth(own_config, listener))
    client = client_context(own_config, identity) if listener.is_inter_broker else None
    assert identity is not None
    made = ListenerContext(
        own_config,
        server,
        client,
        identity.chain[0],
        PrincipalMapping(own_config.ssl_principal_mapping_rules),
        stamps,
    )
    if old is not None:
        refuse_another_identity(old.certificate, made.certificate, own_config)
    _refuse_disagreement(made, old or made)
    return made


def tls_keys(config: BrokerConfig) -> tuple[object, ...]:
    """The values of all keys of TLS."""
    return tuple(getattr(config, field.name) for field in dataclasses.fields(TlsKeys))


def look_at(config: BrokerConfig, listener: ListenerName) -> tuple[object, ...]:
    """Inputs of `load`: equal if it would give the same result. Call it on a thread."""
    own_config = for_listener(config, listener.name)
    return *tls_keys(own_config), *stamps_of(store_files(own_config))


def stamps_of(files: tuple[Path, ...]) -> Stamps:
    """Modification time and size of each file; None for an inaccessible one."""
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _client_auth(own_config: BrokerConfig, listener: ListenerName) -> str:
    """Client authentication: with SASL, only by the listener's own key (KIP-684)."""
    if listener.has_sasl and f"{prefix_of(listener.name)}ssl.client.auth" not in own_config.stated:
        return "none"
    return own_config.ssl_client_auth


def _refuse_disagreement(new: ListenerContext, old: ListenerContext) -> None:
    """Brokers with the new stores must accept those with the old ones, and the reverse."""
    if new.client is None or old.client is None:
        return
    try:
        refuse_unless_they_agree(new.server, old.client)
        refuse_unless_they_agree(old.server, new.client)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", None) or (error.reason or str(error))
        raise ConfigError(
            "brokers with these TLS keys could not connect to each other: "
            f"{why.replace('_', ' ').lower()}",
            "ssl.truststore.location",
        ) from None
