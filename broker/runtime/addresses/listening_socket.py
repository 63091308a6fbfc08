"""A listening socket as Java binds it: one for each address.

That of every interface, however it is written, takes IPv4 and IPv6 at one port. asyncio would bind
one socket for each family, with different ports where the system chooses; and one for each address
of a name, each of which had to be there.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from broker.runtime.addresses.host_names import is_address, system_host
from config.listeners.addresses import is_every_interface


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind the address; of a name the first one, of IPv4 if there is any. Raises OSError.

    Waits for name servers.
    """
    return _bound(*_resolved(host, port))


async def listen_on(host: str, port: int) -> dict[str, Any]:
    """Bind the address; returns what `create_server` is to be given. Raises OSError.

    A name is looked up on a thread.
    """
    if is_every_interface(host) or is_address(host):
        return {"sock": listening_socket(host, port)}
    found = await asyncio.get_running_loop().run_in_executor(None, _resolved, host, port)
    return {"sock": _bound(*found)}


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if is_every_interface(host):
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", port)
        return socket.AF_INET, ("0.0.0.0", port)  # noqa: S104  # as requested
    found = socket.getaddrinfo(system_host(host), port, type=socket.SOCK_STREAM)
    family, *_, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, address


def _bound(family: socket.AddressFamily, address: Any) -> socket.socket:  # noqa: ANN401
    taken = socket.socket(family)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        taken.bind(address)
    except OSError:
        taken.close()
        raise
    return taken
