"""Services shared by all connections of a broker: dispatcher, clock, and common bounds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from broker.network.closure_log import ClosureLog
from broker.network.request_memory import RequestMemory, request_memory_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.runtime.clock import Clock
    from broker.runtime.deferred import Deferred
    from config.broker import BrokerConfig
    from protocol.schema import Part


class FrameDispatcher(Protocol):
    """Serves one frame at a time."""

    def dispatch(
        self, frame: memoryview, peer: Client, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """The answer, now or deferred; None for none, also if it has closed the connection.

        Raises nothing that a client can bring about; the connection aborts if it does.
        """


class Gate(FrameDispatcher, Protocol):
    """Serves the frames of one connection until its client is authenticated."""

    @property
    def max_frame_bytes(self) -> int:
        """Size of the largest frame that it takes."""


@dataclasses.dataclass(slots=True)
class InFlight:
    """Requests with a deferred answer, or behind one (`queued.max.requests`).

    At the limit a connection with such a request handles no further one; a connection without one
    does, so that none waits for the answers of others.
    """

    limit: int
    count: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectionServices:
    """Handed to each connection."""

    dispatcher: FrameDispatcher
    clock: Clock
    memory: RequestMemory
    in_flight: InFlight
    max_request_bytes: int
    """`socket.request.max.bytes`."""
    max_buffer_bytes: int
    """`connection.buffer.max.bytes`."""
    closures: ClosureLog
    """Logs the reason why a connection is closed."""


def connection_services(
    config: BrokerConfig,
    dispatcher: FrameDispatcher,
    clock: Clock,
    soon: Callable[[Callable[[], object]], object],
) -> ConnectionServices:
    """With the limits of `config`; `soon` has the event loop call a function, from any thread."""
    limit = request_memory_limit(config.queued_max_request_bytes, config.broker_processes)
    return ConnectionServices(
        dispatcher,
        clock,
        RequestMemory(limit, soon),
        InFlight(config.queued_max_requests),
        config.socket_request_max_bytes,
        config.connection_buffer_max_bytes,
        ClosureLog(clock, config.connection_log_max_lines_per_second),
    )
