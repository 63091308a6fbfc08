"""The second stage of a start: the addresses are bound, and no client is served on them yet.

A port in use is reported before any file is touched.
"""

from __future__ import annotations

import dataclasses
import socket
from typing import TYPE_CHECKING

from broker.key_index.key_index import wanted_lookups
from broker.metrics.optional_metrics import wanted_doors
from broker.network.connection_quotas import configured_limits
from broker.network.listener import ListenError, Listeners
from broker.startup.listeners.protections import open_protections
from broker.startup.start_error import StartError
from config.errors import ConfigError
from config.listeners.endpoints import read_listeners

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.key_index.endpoint import LookupEndpoint
    from broker.metrics.optional_metrics import Doors
    from broker.network.connection_quotas import ConnectionQuotas
    from broker.runtime.shutdown import UndoStack
    from broker.startup.listeners.authentication import Authentication
    from broker.startup.listeners.protections import Protections
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint
    from config.listeners.endpoints import Listeners as ConfiguredListeners


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of this broker, current or future."""

    listeners: Listeners
    limits: ConnectionQuotas
    """Of the connections on all listeners."""
    bound: dict[str, Endpoint]
    """As configured, by listener name."""
    ports: dict[str, int]
    """Bound ports, by listener name."""
    advertised: dict[str, Endpoint]
    """Endpoints advertised to clients and other brokers, by listener name."""
    protections: Protections
    metrics: Doors
    """Endpoints for metrics and health."""
    lookups: LookupEndpoint | None
    """None if look-ups by key are disabled."""

    @property
    def authentication(self) -> Authentication:
        """The SASL of the listeners."""
        return self.protections.authentication

    @property
    def shown(self) -> str:
        """Text for the log."""
        taken = [
            str(dataclasses.replace(one, port=self.ports[name])) for name, one in self.bound.items()
        ]
        told = [str(one) for one in self.advertised.values()]
        text = ", ".join(taken)
        return text if told == taken else f"{text} (advertised as {', '.join(told)})"


async def take_addresses(config: BrokerConfig, machine: Machine, undo: UndoStack) -> Addresses:
    """Take all that is configured. Raises StartError."""
    try:
        configured = read_listeners(config)
        protections = open_protections(config, configured, machine, undo)
        limits = await machine.unless_stopped(configured_limits(config))
        limits.files = machine.open_files
        listen_on = machine.platform.listen_on
        listeners = Listeners(machine.clock, machine.timers, limits, listen_on)
        undo.push("giving up the addresses", listeners.unbind)
        security = {one.name: await protections.open(config, one) for one in configured.bound}
        ports = {
            one.name: await listeners.bind(one, config, security[one.name])
            for one in configured.bound
        }
        metrics = await wanted_doors(config)
        undo.push("giving up the addresses of the metrics", metrics.close)
        lookups = await wanted_lookups(config)
        if lookups is not None:
            undo.push("giving up the address of the key index", lookups.close)
    except ListenError as error:
        place = config.places.get(error.key)
        raise StartError(f"{place}: {error}" if place else str(error)) from None
    except ConfigError as error:
        raise StartError(str(error)) from None
    advertised = advertised_endpoints(configured, ports)
    machine.platform.look_up_advertised({name: one.host for name, one in advertised.items()})
    bound = by_name(configured.bound)
    return Addresses(listeners, limits, bound, ports, advertised, protections, metrics, lookups)


def by_name(endpoints: Iterable[Endpoint]) -> dict[str, Endpoint]:
    """The endpoint of each listener."""
    return {one.name: one for one in endpoints}


def advertised_endpoints(
    configured: ConfiguredListeners, ports: Mapping[str, int]
) -> dict[str, Endpoint]:
    """Advertised endpoints of the listeners that have a port, by name."""
    return {
        one.name: dataclasses.replace(
            one, host=one.host or socket.gethostname(), port=one.port or ports[one.name]
        )
        for one in configured.advertised
        if one.name in ports
    }
