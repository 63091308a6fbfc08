"""A broker's configuration for one of its listeners, or for one SASL mechanism of a listener.

`listener.name.external.ssl.keystore.location` is `ssl.keystore.location` for the listener EXTERNAL
alone; `listener.name.external.plain.sasl.jaas.config` is for PLAIN there. Names of listeners and of
mechanisms are in lower case within a key (KIP-103, KIP-226).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from config.catalogue import BROKER_KEYS
from config.errors import ConfigError
from config.values import parse_value

if TYPE_CHECKING:
    from config.broker import BrokerConfig
    from config.key import Value

STORE_KEYS = frozenset(
    {
        *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
        *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
        "ssl.truststore.certificates",
    }
)
"""Keys that a running broker changes for a listener that it has, and for that alone (KIP-226)."""

LIMITS_OF_LISTENERS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
"""Keys of listeners that Apache Kafka takes for all brokers; here a listener has no own ones."""

_OF_LISTENERS = ("ssl.", "sasl.", "principal.builder.", "connections.max.reauth.ms")


def is_of_listeners(base: str) -> bool:
    """Return whether a listener may have a value of its own for this key."""
    return base.startswith(_OF_LISTENERS)


def prefix_of(listener: str, mechanism: str | None = None) -> str:
    """Return the prefix of keys for one listener, or one mechanism of it, alone."""
    prefix = f"listener.name.{listener.lower()}."
    return prefix if mechanism is None else f"{prefix}{mechanism.lower()}."


def for_listener(config: BrokerConfig, listener: str, mechanism: str | None = None) -> BrokerConfig:
    """The configuration as a listener has it, or a mechanism there. Raises ConfigError."""
    for prefix in (prefix_of(listener), prefix_of(listener, mechanism) if mechanism else None):
        if prefix is not None:
            config = _overridden(config, prefix)
    return config


def _overridden(config: BrokerConfig, prefix: str) -> BrokerConfig:
    values: dict[str, Value] = {}
    for name, text in config.stated.items():
        known = BROKER_KEYS.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if known is not None:
            try:
                values[known.attribute] = parse_value(name, known.key, text)
            except ConfigError as problem:
                raise ConfigError(str(problem), name) from None
    return dataclasses.replace(config, **values) if values else config  # type: ignore[arg-type]
