"""The port of connections to other brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from protocol.schema import Request, Response

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


class LinkSecurity(Protocol):
    """How this broker shows others who it is."""

    async def log_in(self, ask: Ask) -> float | None:
        """Log in on a connection, new or not; returns the seconds after which to do so again.

        None is never. `ask` sends a request in a version. Raises LinkError.
        """
        ...


class Nobody:
    """Not at all, on a listener without SASL."""

    async def log_in(self, ask: Ask) -> None:
        """Nobody asks."""


NOBODY = Nobody()


class Links(Protocol):
    """Makes connections."""

    def link(self, broker_id: int, purpose: str) -> Link:
        """A separate connection; `purpose` is the client id that the other broker sees."""
        ...
