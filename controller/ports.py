"""The ports of the controller, provided by its broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterable

    from protocol.schema import Request, Response

T = TypeVar("T")


class Slices(Protocol):
    """Slices one long piece of work on the event loop."""

    def each(self, items: Iterable[T], /) -> AsyncIterator[T]:
        """The same items; others are served between two of them every few milliseconds."""

    async def give_way(self) -> None:
        """The same for work other than iteration: call it before each step."""


class BrokerChannels(Protocol):
    """One ordered line of control requests to each live broker, this one included."""

    def send(self, broker_id: int, request: Request) -> asyncio.Future[Response]:
        """Queue LeaderAndIsr, UpdateMetadata or StopReplica for a broker.

        Requests reach one broker in the order of the calls, one at a time, and are sent again until
        they are answered. The future is cancelled once the broker is removed. A broker that does
        not answer delays no other.
        """
