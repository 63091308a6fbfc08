"""Listeners of a node with `process.roles`: those for clients, and those of controllers.

A controller opens the listeners in `controller.listener.names`; a broker connects to the first of
them and opens none. Rules and default are those of Apache Kafka's `KafkaConfig`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from config.errors import ConfigError, invalid
from config.listeners.addresses import is_every_interface
from config.listeners.endpoints import (
    bound_endpoints,
    protocol_map,
    read_listeners,
    refuse_shared_ports,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
NAMES: Final = "controller.listener.names"
ADVERTISED: Final = "advertised.listeners"
PROTOCOLS: Final = "listener.security.protocol.map"
SECURED: Final = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_PLAINTEXT: Final = "PLAINTEXT"


def read_node_listeners(
    config: BrokerConfig, roles: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, int] | None]:
    """Names of the controllers' listeners, and where the first of this node's is reached.

    The address is None on a node that is no controller; its host is empty for this machine's.
    Raises ConfigError where the keys of listeners do not fit together.
    """
    names = config.controller_listener_names
    config = _with_default_protocols(config, names)
    everything = dataclasses.replace(config, controller_listener_names=())
    bound = bound_endpoints(everything)
    refuse_shared_ports(bound)
    _check_names(config, names, roles, bound)
    if BROKER in roles:
        read_listeners(config)
    if CONTROLLER not in roles:
        return names, None
    return names, _address(names, bound, _advertised(everything, names, roles))


def _with_default_protocols(config: BrokerConfig, names: Sequence[str]) -> BrokerConfig:
    """Controllers' listeners are PLAINTEXT if no map is given and nothing is secured."""
    written = {text.partition("://")[0].strip().upper() for text in config.listeners}
    if PROTOCOLS in config.stated or SECURED & {*names, *written}:
        return config
    added = (f"{name}:{_PLAINTEXT}" for name in names if name != _PLAINTEXT)
    text = ",".join((config.listener_security_protocol_map, *added))
    return dataclasses.replace(config, listener_security_protocol_map=text)


def _check_names(
    config: BrokerConfig, names: Sequence[str], roles: Collection[str], bound: Sequence[Endpoint]
) -> None:
    shown = ",".join(names)
    opened = {endpoint.name for endpoint in bound}  # in upper case, which the names must be in too
    protocols = protocol_map(config.listener_security_protocol_map)
    for name in names:
        if name.upper() not in protocols:
            raise invalid(NAMES, shown, f"{PROTOCOLS} has no protocol for {name}")
    if CONTROLLER not in roles:
        if opened & set(names):
            raise invalid(
                NAMES, shown, "a broker that is no controller has none of them in listeners"
            )
    elif not opened & set(names):
        raise invalid(NAMES, shown, "a controller has at least one of them in listeners")
    elif BROKER not in roles and not opened <= set(names):
        why = f"a controller that is no broker has only listeners in {NAMES}"
        raise invalid("listeners", ",".join(map(str, bound)), why)


def _advertised(
    config: BrokerConfig, names: Collection[str], roles: Collection[str]
) -> dict[str, Endpoint]:
    """The addresses in `advertised.listeners`, by name of the listener."""
    if not config.advertised_listeners:
        return {}
    as_bound = dataclasses.replace(config, listeners=config.advertised_listeners)
    found = {endpoint.name: endpoint for endpoint in bound_endpoints(as_bound)}
    shown = ",".join(config.advertised_listeners)
    if any(endpoint.host == "0.0.0.0" for endpoint in found.values()):  # noqa: S104
        raise invalid(ADVERTISED, shown, "nobody can connect to an address of every interface")
    if BROKER not in roles and not found.keys() <= set(names):
        raise invalid(ADVERTISED, shown, f"a controller has only listeners in {NAMES}")
    return found


def _address(
    names: Sequence[str], bound: Sequence[Endpoint], advertised: dict[str, Endpoint]
) -> tuple[str, int]:
    opened = {endpoint.name: endpoint for endpoint in bound}
    for name in names:
        if name in advertised:
            return advertised[name].host, advertised[name].port
        if name in opened:
            host = opened[name].host
            return "" if is_every_interface(host) else host, opened[name].port
    raise ConfigError(f"none of {', '.join(names)} is in listeners", NAMES)
