"""Hosts as the system knows them, looked up on threads: a name server may take half a minute."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from ipaddress import ip_address
from typing import TYPE_CHECKING

from config.listeners.addresses import counted_address, java_address

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

THREAD_NAME = "host names"


def look_up_advertised(hosts: Mapping[str, str]) -> None:
    """Warn of each host, by listener, that has no address here; returns at once.

    A warning only: clients of a container may know names that it does not. The thread is a daemon,
    as nothing must wait for it, least of all the end of the process.
    """
    threading.Thread(target=_look_up, args=(dict(hosts),), name=THREAD_NAME, daemon=True).start()


def _look_up(hosts: Mapping[str, str]) -> None:
    for listener, host in hosts.items():
        try:
            socket.getaddrinfo(system_host(host), None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # the latter for a label of more than 63 letters
            logger.warning(
                "listener %s: the advertised host %s does not resolve here (%s); "
                "clients and other brokers must be able to resolve it",
                listener,
                host,
                error,
            )


def system_host(host: str) -> str:
    """Write a host so that `getaddrinfo` takes it for what Java takes it for.

    Zones become numbers, as glibc knows their names only in link-local addresses; IPv4-mapped
    addresses become those of IPv4; brackets go. Raises OSError for an interface that is not there.
    """
    is_bracketed = host.startswith("[") and host.endswith("]") and ":" in host
    address, percent, zone = java_address(host[1:-1] if is_bracketed else host).partition("%")
    if ":" in address and zone and not zone.isdecimal():
        try:
            zone = str(socket.if_nametoindex(zone))
        except OSError:
            raise OSError(f"there is no interface {zone}") from None
    return f"{address}{percent}{zone}"


def is_address(host: str) -> bool:
    """Return whether it is an IP address, not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def address_of(host: str) -> str | None:
    """The first address of a host, as limits count it; None if none is known."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(system_host(host), None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # the latter for a zero byte, or a label of more than 63 letters
        return None
    return counted_address(str(found[0][4][0]))
