"""Connections to other brokers, as replication needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from protocol.schema import Request, Response


class LinkError(Exception):
    """No answer: the broker is not known, cannot be reached, or hung up."""


class Link(Protocol):
    """A connection to one broker, opened when first used and anew after it broke."""

    async def ask(self, request: Request, version: int) -> Response:
        """Send one request and wait for its answer; raises LinkError."""
        ...

    def close(self) -> None:
        """Hang up; who waits gets a LinkError."""
        ...


class Links(Protocol):
    """Makes connections."""

    def link(self, broker_id: int, purpose: str) -> Link:
        """A connection of one's own; `purpose` is the client id that the other broker sees."""
        ...
