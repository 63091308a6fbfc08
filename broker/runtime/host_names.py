"""Names of hosts, looked up on a thread: a name server may take half a minute."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import threading
from typing import TYPE_CHECKING

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
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # the latter for a label of more than 63 letters
            logger.warning(
                "listener %s: the advertised host %s does not resolve here (%s); "
                "clients and other brokers must be able to resolve it",
                listener,
                host,
                error,
            )


def is_address(host: str) -> bool:
    """Whether it is an address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def address_of(host: str) -> str | None:
    """The first address of a host, looked up on a thread; None if none is known."""
    if is_address(host):
        return host
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the latter for a label of more than 63 letters
        return None
    return str(found[0][4][0])
