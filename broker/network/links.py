"""The port of connections to other brokers."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Protocol

from broker.runtime.addresses.host_names import system_host

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.schema import Request, Response

    Address = tuple[str, int]
    Ask = Callable[[Request, int], Awaitable[Response]]


class LinkError(Exception):
    """No answer: the broker is unknown, unreachable, or closed the connection."""


class Link(Protocol):
    """A connection to one broker, opened at the first request and again after a break."""

    async def ask(self, request: Request, version: int) -> Response:
        """Send one request and wait for its answer. Raises LinkError."""
        ...

    def close(self) -> None:
        """Close the connection; a waiting request fails with LinkError."""
        ...


class Login(Protocol):
    """Authentication of this broker to other brokers."""

    async def log_in(self, ask: Ask) -> float | None:
        """Log in on a connection, new or not; returns the seconds after which to do so again.

        None is never. `ask` sends a request in a version. Raises LinkError.
        """
        ...


class Connector(Protocol):
    """Connector of a link's socket, with or without TLS."""

    async def connect(self, protocol: asyncio.BufferedProtocol, address: Address) -> None:
        """Connect; the protocol may write from then on. Raises OSError."""
        ...


class Nobody:
    """Not at all, on a listener without SASL."""

    async def log_in(self, ask: Ask) -> None:
        """Do nothing: there is no authentication."""


class Plain:
    """TCP, on a listener without TLS."""

    async def connect(self, protocol: asyncio.BufferedProtocol, address: Address) -> None:
        """Connect. Raises OSError."""
        host, port = address
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: protocol, system_host(host), port)


@dataclasses.dataclass(frozen=True, slots=True)
class LinkSecurity:
    """Of the links from this broker to all others."""

    login: Login = dataclasses.field(default_factory=Nobody)
    connector: Connector = dataclasses.field(default_factory=Plain)


UNPROTECTED = LinkSecurity()


class Links(Protocol):
    """Makes connections."""

    def link(self, broker_id: int, purpose: str) -> Link:
        """A separate connection; `purpose` is the client id that the other broker sees."""
        ...
