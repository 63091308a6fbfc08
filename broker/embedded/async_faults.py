"""Request faults for a broker on the loop of a coroutine: `mischief`, awaited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from broker.embedded.faults.fault import Fault, Mischief
from broker.embedded.names import error_named, request_named

if TYPE_CHECKING:
    from broker.embedded.hosted_broker import HostedBroker
    from protocol.errors import ErrorCode
    from protocol.schema import Request

    Kind = type[Request] | str | None


class AsyncFaultyRequests(ABC):
    """Each of these strikes at once, and as a context until its end. `request` None is any.

    Requests and errors may be given by name, in any case. `times` bounds how many requests are
    struck, `topic` and `client_id` which.
    """

    @property
    @abstractmethod
    def _broker(self) -> HostedBroker:
        """The broker, if called on its loop. Raises EmbeddedBrokerError otherwise."""

    async def fail(
        self,
        request: Kind,
        error: ErrorCode | str,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> AsyncFault:
        """Answer with an error, and do not handle it."""
        kind, code = request_named(request), error_named(error)
        fault = Fault(Mischief.FAIL, kind, code, 0.0, times, topic, client_id)
        return await self.set_fault(fault)

    async def delay(
        self,
        request: Kind,
        seconds: float,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> AsyncFault:
        """Handle it later, by the broker's clock; its connection waits meanwhile."""
        fault = Fault(
            Mischief.DELAY,
            request_named(request),
            seconds=seconds,
            times=times,
            topic=topic,
            client_id=client_id,
        )
        return await self.set_fault(fault)

    async def disconnect(
        self,
        request: Kind,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> AsyncFault:
        """Close its connection, and do not handle it."""
        kind = request_named(request)
        fault = Fault(Mischief.DISCONNECT, kind, times=times, topic=topic, client_id=client_id)
        return await self.set_fault(fault)

    async def drop_answer(
        self,
        request: Kind,
        *,
        times: int | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        disconnects: bool = True,
    ) -> AsyncFault:
        """Handle it and never answer.

        The connection is closed in the place of an answer; without `disconnects` it stays open, and
        the client has to notice by its own time-out.
        """
        mischief = Mischief.DROP_ANSWER if disconnects else Mischief.WITHHOLD_ANSWER
        kind = request_named(request)
        fault = Fault(mischief, kind, times=times, topic=topic, client_id=client_id)
        return await self.set_fault(fault)

    async def set_fault(self, fault: Fault) -> AsyncFault:
        """Set any fault there is."""
        broker = self._broker
        return AsyncFault(broker, await broker.add_fault(fault))


class AsyncFault:
    """Strikes until it is removed, or has struck often enough. As a context, until its end."""

    def __init__(self, broker: HostedBroker, number: int) -> None:
        self._broker = broker
        self._number = number

    async def count(self) -> int:
        """Number of requests it has struck."""
        return await self._broker.fault_count(self._number)

    async def wait(self, count: int = 1, timeout_seconds: float = 10.0) -> None:
        """Wait until it has struck `count` requests. Raises NotReachedError."""
        await self._broker.wait_for_fault(self._number, count, timeout_seconds)

    async def remove(self) -> None:
        """Remove it: it strikes no more requests."""
        await self._broker.remove_fault(self._number)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.remove()
