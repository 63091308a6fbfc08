"""Listeners that are added, removed and moved while the broker runs (`listeners` and its kin).

A change is tried out before it is stored: with unusable stores or users, or a port in use, it is
refused, and nothing changes. Once stored it is carried out: addresses are closed and bound,
connections of a removed listener are closed, and the registration advertises the new addresses.
Connections of a moved listener stay.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from broker.network.listener import ListenError
from broker.startup.access_notices import tell_access
from broker.startup.addresses import advertised_endpoints, by_name
from config.errors import ConfigError
from config.listeners.endpoints import KEYS, read_listeners

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from broker.network.listener import Door
    from broker.startup.addresses import Addresses
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint, Listeners

    Bound = Mapping[str, Endpoint]

FAREWELL_MS = 1000
"""Time for which the connections of a removed listener stay, so that a client that had it removed
over one of them gets the response. Fixed, as it is for one response.
"""

logger = logging.getLogger(__name__)


class Difference(NamedTuple):
    """Between the listeners that are open and those that shall be, by name."""

    gone: tuple[str, ...]
    moved: tuple[str, ...]
    new: tuple[str, ...]


def difference(now: Bound, wanted: Bound) -> Difference:
    """Changes to make. Raises ConfigError if an open listener had another protocol."""
    for name in now.keys() & wanted.keys():
        if now[name].protocol != wanted[name].protocol:
            why = f"Security protocol cannot be updated for existing listener {name}"
            raise ConfigError(f"{why}: remove it first, or choose another name", *KEYS)
    return Difference(
        tuple(name for name in now if name not in wanted),
        tuple(name for name in now if name in wanted and now[name] != wanted[name]),
        tuple(name for name in wanted if name not in now),
    )


class ListenerChanges:
    """Of one broker."""

    def __init__(
        self, addresses: Addresses, machine: Machine, register: Callable[[], Awaitable[None]]
    ) -> None:
        """`register` updates this broker's registration."""
        self._addresses = addresses
        self._machine = machine
        self._register = register

    async def check(self, config: BrokerConfig) -> None:
        """Raises ConfigError if the broker could not go on with the listeners of `config`."""
        addresses = self._addresses
        protections = addresses.protections
        if protections.tls is not None:
            await protections.tls.check(config)
        wanted = by_name(read_listeners(config).bound)
        gone, moved, new = difference(addresses.bound, wanted)
        for name in new:
            await protections.check(config, wanted[name])
        released = {addresses.ports[name] for name in (*gone, *moved)}
        for name in (*moved, *new):
            if wanted[name].port not in released:
                await self._try_out(wanted[name], config)

    async def change(self, config: BrokerConfig) -> None:
        """Open the listeners of `config`, which was checked; errors are logged."""
        addresses = self._addresses
        tls = addresses.protections.tls
        if tls is not None:
            await tls.change(config)
        configured = read_listeners(config)
        wanted = by_name(configured.bound)
        try:
            gone, moved, new = difference(addresses.bound, wanted)
        except ConfigError as error:
            logger.error("listeners unchanged: %s", error)  # noqa: TRY400
            return
        before = {name: addresses.bound[name] for name in (*gone, *moved)}
        for name in before:
            self._shut(name, is_gone=name in gone)
        for name in (*moved, *new):
            if await self._open(wanted[name], config):
                continue
            if name in before:
                await self._open(before[name], config)
            else:
                addresses.protections.close(name)
        if await self._advertise(configured) or gone or moved or new:
            logger.info("listeners are now %s", addresses.shown)
            if addresses.listeners.are_served:  # else the end of the start logs it
                opened = [name for name in (*moved, *new) if name in addresses.bound]
                tell_access(config, [addresses.bound[name] for name in opened])

    def _shut(self, name: str, *, is_gone: bool) -> None:
        addresses = self._addresses
        doors = addresses.listeners.shut(name)
        del addresses.bound[name], addresses.ports[name]
        if is_gone:
            addresses.protections.close(name)
            self._machine.supervision.spawn(self._part(name, doors), "removed listener")

    async def _part(self, name: str, doors: list[Door]) -> None:
        await self._machine.timers.sleep(FAREWELL_MS)
        count = await self._addresses.listeners.dismiss(doors)
        logger.info("listener %s removed: %d connections closed", name, count)

    async def _open(self, endpoint: Endpoint, config: BrokerConfig) -> bool:
        """Return whether that was possible; the address may have been taken since the check."""
        addresses, name = self._addresses, endpoint.name
        try:
            security = await addresses.protections.open(config, endpoint)
            addresses.ports[name] = await addresses.listeners.bind(endpoint, config, security)
        except (ConfigError, ListenError) as error:
            logger.error("%s not opened: %s", endpoint, error)  # noqa: TRY400
            return False
        addresses.bound[name] = endpoint
        return True

    async def _advertise(self, configured: Listeners) -> bool:
        """Advertise the endpoints; return whether they have changed."""
        addresses = self._addresses
        advertised = advertised_endpoints(configured, addresses.ports)
        if advertised == addresses.advertised:
            return False
        addresses.advertised.clear()
        addresses.advertised.update(advertised)
        hosts = {name: one.host for name, one in advertised.items()}
        self._machine.platform.look_up_advertised(hosts)
        await self._register()
        return True

    async def _try_out(self, endpoint: Endpoint, config: BrokerConfig) -> None:
        try:
            await self._addresses.listeners.try_out(endpoint, config)
        except ListenError as error:
            raise ConfigError(str(error), *KEYS) from None
