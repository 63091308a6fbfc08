"""Limits on open connections, in total and per address, and on the rate of new ones.

Apache Kafka lets a connection above `max.connections` wait until another one ends; here it is
closed at once, as both do with one above the limit of an address. A connection above the rate is
accepted, and read after a pause; one above the rate of its address is closed after one.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections import Counter
from typing import TYPE_CHECKING

from broker.runtime.addresses.host_names import system_host
from config.errors import ConfigError
from config.key import INT_MAX
from config.listeners.addresses import counted_address
from config.listeners.endpoints import read_address_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.runtime.open_files import OpenFiles
    from config.broker import BrokerConfig


logger = logging.getLogger(__name__)

SECOND_MS = 1000
SLOWEST_PER_SECOND = 1
"""The rate used for a configured 0: a broker that accepts no connection is of no use."""


class ConnectionRateLimit:
    """Gives connections their turns: a second's worth at once, the others evenly after that."""

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._interval_ms = SECOND_MS / per_second
        self._turn_ms = -math.inf

    def wait_ms(self, now_ms: int) -> int:
        """Take a turn, at a monotonic time; returns how long to wait for it."""
        turn_ms = max(self._turn_ms, now_ms - SECOND_MS + self._interval_ms)
        self._turn_ms = turn_ms + self._interval_ms
        return max(0, math.ceil(turn_ms - now_ms))


class ConnectionQuotas:
    """Counts open connections against the configured limits."""

    pace: ConnectionRateLimit | None = None
    """None without a limit on the rate."""
    throttle_ms: Callable[[str], int] = staticmethod(lambda _: 0)
    """Returns how long to keep a connection of an address before its end; 0 if it may be served."""
    files: OpenFiles | None = None
    """Returns whether a file descriptor is free for another connection."""

    def __init__(self, in_all: int, per_host: int, of_hosts: Mapping[str, int]) -> None:
        self._limits = in_all, per_host, of_hosts
        self._wanted: BrokerConfig | None = None
        self._open: Counter[str] = Counter()
        self._total = 0

    def admit(self, host: str) -> str | None:
        """Count a connection from `host`; returns None, or the reason to refuse it, uncounted.

        The reason is "" if it was logged already.
        """
        in_all, per_host, of_hosts = self._limits
        if self.files is not None and (refusal := self.files.refusal()) is not None:
            return refusal
        if self._total >= in_all:
            return f"{self._total} connections are open (max.connections)"
        if self._open[host] >= of_hosts.get(host, per_host):
            return f"{self._open[host]} connections from there are open (max.connections.per.ip)"
        self._open[host] += 1
        self._total += 1
        return None

    async def change(self, config: BrokerConfig) -> None:
        """Apply other limits to new connections.

        Without effect if a host name is unknown, or if another change follows while names are
        resolved.
        """
        self._wanted = config
        try:
            wanted = await configured_limits(config)
        except ConfigError as error:
            logger.warning("connection quotas unchanged: %s", error)
            return
        if self._wanted is not config:
            return
        self._limits = wanted.limits
        if _per_second(self.pace) != _per_second(wanted.pace):
            self.pace = wanted.pace

    @property
    def limits(self) -> tuple[int, int, Mapping[str, int]]:
        """The limits in total, per address, and of the addresses with overrides."""
        return self._limits

    def release(self, host: str) -> None:
        """An admitted connection has closed."""
        self._total -= 1
        self._open[host] -= 1
        if not self._open[host]:
            del self._open[host]


async def configured_limits(config: BrokerConfig) -> ConnectionQuotas:
    """Read the limits, resolving host names. Raises ConfigError for an unknown one."""
    configured = read_address_limits(config)
    found = await asyncio.gather(*map(_addresses, configured))
    of_hosts = {
        address: limit
        for addresses, limit in zip(found, configured.values(), strict=True)
        for address in addresses
    }
    limits = ConnectionQuotas(config.max_connections, config.max_connections_per_ip, of_hosts)
    if config.max_connection_creation_rate < INT_MAX:
        limits.pace = ConnectionRateLimit(
            max(config.max_connection_creation_rate, SLOWEST_PER_SECOND)
        )
    return limits


def _per_second(pace: ConnectionRateLimit | None) -> int | None:
    return None if pace is None else pace.per_second


async def _addresses(host: str) -> list[str]:
    """On a thread: a name server that does not answer takes half a minute."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            system_host(host), None, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:  # the latter for a label of more than 63 letters
        raise ConfigError(f"max.connections.per.ip.overrides: {host}: {error}") from None
    return [counted_address(str(address[0])) for _, _, _, _, address in found]
