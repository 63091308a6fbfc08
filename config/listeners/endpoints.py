"""Listeners of the broker, advertised listeners, and limits of connections.

A listener is written `NAME://host:port`. Its name is a security protocol, or is given one by
`listener.security.protocol.map`. No host means every interface; an IPv6 address stands in brackets,
and may have a zone: `[fe80::1%eth0]`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from config.errors import ConfigError, invalid
from config.listeners.addresses import is_every_interface, join_address, split_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.broker import BrokerConfig

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

KEYS = ("listeners", "advertised.listeners", "listener.security.protocol.map")
"""Keys that are only valid together."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of one listener."""

    name: str
    protocol: str
    """One of `SECURITY_PROTOCOLS`."""
    host: str
    """Without brackets; empty for every interface, or for an advertised name left out."""
    port: int
    """0 lets the system choose when listening."""

    def __str__(self) -> str:
        return f"{self.name}://{join_address(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Listeners:
    """Listeners that a broker's listener keys define."""

    bound: tuple[Endpoint, ...]
    """Endpoints to listen on, in the order written."""
    advertised: tuple[Endpoint, ...]
    """Endpoints for clients and brokers; an empty host means: this machine's name."""
    inter_broker: str
    """Name of the advertised listener that other brokers connect to."""


def read_listeners(config: BrokerConfig) -> Listeners:
    """Make endpoints out of the listener keys; raise ConfigError where they do not fit together."""
    bound = bound_endpoints(config)
    refuse_shared_ports(bound)
    advertised = (
        _endpoints("advertised.listeners", config.advertised_listeners, config)
        if config.advertised_listeners
        else tuple(_advertised_by_default(endpoint) for endpoint in bound)
    )
    _refuse_unreachable(advertised, bound)
    return Listeners(bound, advertised, _inter_broker(config, advertised))


def bound_endpoints(config: BrokerConfig) -> tuple[Endpoint, ...]:
    """Make endpoints of `listeners` alone; raise ConfigError for an invalid one."""
    return _endpoints("listeners", config.listeners, config)


def controller_listeners(config: BrokerConfig) -> tuple[str, ...]:
    """Name the listeners that are for Raft controllers and therefore not opened here."""
    names = {_name(text) for text in config.listeners}
    return tuple(name for name in config.controller_listener_names if name.upper() in names)


def read_address_limits(config: BrokerConfig) -> dict[str, int]:
    """Read `max.connections.per.ip.overrides`: connections by host name or address."""
    key, text = "max.connections.per.ip.overrides", config.max_connections_per_ip_overrides
    limits = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, limit = (part.strip() for part in pair.rpartition(":"))
        if not host or "[" in host or not limit.isdecimal():
            why = f"{pair} is not an address and a limit, as address:limit, IPv6 without brackets"
            raise invalid(key, text, why)
        limits[host] = int(limit)
    return limits


def protocol_map(text: str) -> dict[str, str]:
    """The security protocol of each listener in `listener.security.protocol.map`, by name."""
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip() for part in pair.partition(":"))
        if protocol not in SECURITY_PROTOCOLS:
            why = f"{pair} does not map a listener to one of: {', '.join(SECURITY_PROTOCOLS)}"
            raise invalid("listener.security.protocol.map", text, why)
        protocols[name.upper()] = protocol
    return protocols


def _endpoints(key: str, texts: Sequence[str], config: BrokerConfig) -> tuple[Endpoint, ...]:
    """Read the listeners of a key but for those of Raft controllers, as Apache's brokers do."""
    protocols = protocol_map(config.listener_security_protocol_map)
    of_controllers = {name.upper() for name in config.controller_listener_names}
    shown = ",".join(texts)
    ours = [text for text in texts if text and _name(text) not in of_controllers]
    endpoints = tuple(_endpoint(key, text, protocols) for text in ours)
    if not endpoints:
        why = "there must be at least one listener, as NAME://host:port"
        if any(texts):
            why = "all of them are in controller.listener.names, and this is no Raft controller"
        raise invalid(key, shown, why)
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) != len(names):
        raise invalid(key, shown, "each listener must have a different name")
    return endpoints


def _name(text: str) -> str:
    return text.partition("://")[0].strip().upper()


def _endpoint(key: str, text: str, protocols: dict[str, str]) -> Endpoint:
    name, separator, address = text.strip().partition("://")
    if not separator:
        raise invalid(key, text, "a listener is written NAME://host:port")
    try:
        host, port = split_address(address)
    except ValueError as error:
        raise invalid(key, text, str(error)) from None
    name = name.upper()
    if name not in protocols:
        why = f"no security protocol is given for {name} in listener.security.protocol.map"
        raise invalid(key, text, why)
    return Endpoint(name, protocols[name], host, port)


def refuse_shared_ports(bound: tuple[Endpoint, ...]) -> None:
    """Raise ConfigError if two listeners want one port, unless one is IPv4 and the other IPv6."""
    counts = Counter(endpoint.port for endpoint in bound if endpoint.port)
    for port, count in counts.items():
        versions = {_ip_version(endpoint.host) for endpoint in bound if endpoint.port == port}
        if count > 1 and (count, versions) != (2, {4, 6}):
            why = (
                "each listener must have a different port unless one of two has an IPv4 address "
                f"and the other an IPv6 address: {count} have port {port}"
            )
            raise invalid("listeners", ",".join(map(str, bound)), why)


def _ip_version(host: str) -> int | None:
    """Return the IP version of an address; None for a name, or for every interface."""
    try:
        return ip_address(host).version
    except ValueError:
        return None


def _advertised_by_default(endpoint: Endpoint) -> Endpoint:
    host = "" if is_every_interface(endpoint.host) else endpoint.host
    return Endpoint(endpoint.name, endpoint.protocol, host, endpoint.port)


def _refuse_unreachable(advertised: tuple[Endpoint, ...], bound: tuple[Endpoint, ...]) -> None:
    names = {endpoint.name for endpoint in bound}
    for endpoint in advertised:
        if endpoint.host == "0.0.0.0":  # noqa: S104  # which Apache Kafka refuses, but not [::]
            why = "clients cannot connect to an address that means every interface"
            raise invalid("advertised.listeners", endpoint, why)
        if endpoint.name not in names:
            why = f"{endpoint.name} is not among the listeners {', '.join(sorted(names))}"
            raise invalid("advertised.listeners", endpoint, why)


def _inter_broker(config: BrokerConfig, advertised: tuple[Endpoint, ...]) -> str:
    name = config.inter_broker_listener_name
    if name is not None and "security.inter.broker.protocol" in config.stated:
        keys = ("inter.broker.listener.name", "security.inter.broker.protocol")
        raise ConfigError(f"Only one of {keys[0]} and {keys[1]} can be set", *keys)
    wanted = (name or config.security_inter_broker_protocol).upper()
    if wanted in {endpoint.name for endpoint in advertised}:
        return wanted
    shown = ", ".join(map(str, advertised))
    if name is not None or "security.inter.broker.protocol" in config.stated:
        key = "inter.broker.listener.name" if name else "security.inter.broker.protocol"
        raise invalid(key, wanted, f"it must be one of the advertised listeners: {shown}")
    key = "advertised.listeners" if config.advertised_listeners else "listeners"
    why = (
        f"{wanted} must be one of the advertised listeners, as brokers talk to each other over it "
        "unless inter.broker.listener.name or security.inter.broker.protocol names another"
    )
    raise invalid(key, shown, why)
