"""The second stage of a start: the addresses are taken, and nobody is served on them yet.

A port in use is told before any file is touched.
"""

from __future__ import annotations

import dataclasses
import socket
from typing import TYPE_CHECKING

from broker.metrics.optional_metrics import wanted_doors
from broker.network.connection_quotas import configured_limits
from broker.network.links import LinkSecurity
from broker.network.listener import ListenError, Listeners
from broker.network.listener_security import EndpointSecurity
from broker.startup.authentication import open_authentication
from broker.startup.start_error import StartError
from broker.startup.tls import open_tls
from config.errors import ConfigError
from config.listeners import read_listeners

if TYPE_CHECKING:
    from broker.metrics.optional_metrics import Doors
    from broker.network.connection_quotas import ConnectionQuotas
    from broker.runtime.shutdown import UndoStack
    from broker.security.tls.broker_tls import BrokerTls
    from broker.startup.authentication import Authentication
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """Where this broker listens, or will."""

    listeners: Listeners
    limits: ConnectionQuotas
    """Of the connections on all listeners."""
    bound: dict[str, tuple[str, int]]
    """Host and port by listener name; no host is all addresses of the machine."""
    advertised: dict[str, tuple[str, int]]
    """The same, as clients and other brokers are to connect."""
    security: dict[str, EndpointSecurity]
    """What protects each listener, by its name."""
    authentication: Authentication
    tls: BrokerTls | None
    """None when no listener has TLS."""
    metrics: Doors
    """Where metrics are asked for, and how the broker is."""

    @property
    def link_security(self) -> LinkSecurity:
        """How this broker connects to others, and logs in."""
        login = self.authentication.links
        if self.tls is None or self.tls.for_links is None:
            return LinkSecurity(login)
        return LinkSecurity(login, self.tls)


async def take_addresses(config: BrokerConfig, machine: Machine, undo: UndoStack) -> Addresses:
    """Take all that is configured. Raises StartError."""
    try:
        configured = read_listeners(config)
        authentication = open_authentication(config, configured, machine, undo)
        limits = await machine.unless_stopped(configured_limits(config))
        limits.files = machine.open_files
        listeners = Listeners(machine.clock, machine.timers, limits)
        undo.push("giving up the addresses", listeners.unbind)
        tls = await open_tls(config, configured, machine, undo)
        ports, security = {}, {}
        for endpoint in configured.bound:
            below = None if tls is None else tls.listener(endpoint.name)
            security[endpoint.name] = protection = EndpointSecurity(endpoint.protocol, below)
            if protection.has_sasl:
                protection.gate_of = authentication.listeners[endpoint.name].gate
            ports[endpoint.name] = await listeners.bind(endpoint, config, protection)
        metrics = await wanted_doors(config)
    except (ConfigError, ListenError) as error:
        raise StartError(str(error)) from None
    undo.push("giving up the addresses of the metrics", metrics.close)
    advertised = {
        endpoint.name: (
            endpoint.host or socket.gethostname(),
            endpoint.port or ports[endpoint.name],
        )
        for endpoint in configured.advertised
    }
    machine.platform.look_up_advertised({name: host for name, (host, _) in advertised.items()})
    bound = {one.name: (one.host or "", ports[one.name]) for one in configured.bound}
    return Addresses(listeners, limits, bound, advertised, security, authentication, tls, metrics)
