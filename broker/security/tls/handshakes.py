"""TLS handshakes of clients: on threads, in bounded number and for a bounded time.

A handshake costs a millisecond of arithmetic, and five hundred may come in a second, so it must not
be done on the event loop. Each step, from one message of the client to the next, is a function call
on a thread, unless it is sure to be short; between the steps a handshake waits on the loop at no
cost. Only one side has the `SSLObject` at a time: while a thread does, the transport reads nothing.

A client that is silent or slow is hung up on after `ssl.handshake.timeout.ms`, and once there are
`max.ssl.handshakes` handshakes under way, so is the oldest: an honest client takes milliseconds, so
strangers that connect and wait only ever displace each other.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Protocol

from broker.runtime.deferred import Deferred, settle

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from broker.runtime.timers import Cancellable, Timers

THREADS = 1
"""Fixed: two would take the event loop's share of a machine with two processors."""


class Candidate(Protocol):
    """A peer in its handshake."""

    def fail(self, reason: str) -> None:
        """End the handshake, and the connection."""


class Handshakes:
    """Handshakes of all listeners, and of links to other brokers, together."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: Executor,
        timers: Timers,
        limits: tuple[int, int],
    ) -> None:
        """`limits`: how long a client may take (ms), and how many may be at it."""
        self._loop = loop
        self._threads = threads
        self._timers = timers
        self._timeout_ms, self._most = limits
        self._under_way: dict[Candidate, Cancellable] = {}
        """In the order in which they began, with the timers that end them."""

    @property
    def are_under_way(self) -> bool:
        """True if any handshake is under way."""
        return bool(self._under_way)

    def begin(self, candidate: Candidate) -> None:
        """Count a client that has connected, until `end`; at the limit, hang up on the oldest."""
        if len(self._under_way) >= self._most:
            first = next(iter(self._under_way))
            self.end(first)
            first.fail(f"others wait to begin a TLS handshake (max.ssl.handshakes={self._most})")

        def timed_out() -> None:
            self.end(candidate)
            limit = f"ssl.handshake.timeout.ms={self._timeout_ms}"
            candidate.fail(f"its TLS handshake did not end in time ({limit})")

        self._under_way[candidate] = self._timers.schedule(self._timeout_ms, timed_out)

    def end(self, candidate: Candidate) -> None:
        """Note the end of a handshake, whatever its result."""
        timer = self._under_way.pop(candidate, None)
        if timer is not None:
            timer.cancel()

    def step(self, end: ssl.SSLObject) -> Deferred[bool]:
        """Process received bytes on a thread; gives whether it is done. Fails with ssl.SSLError."""
        outcome: Deferred[bool] = Deferred()

        def finish(done: asyncio.Future[bool]) -> None:
            settle(outcome, done)

        self._loop.run_in_executor(self._threads, go_on, end).add_done_callback(finish)
        return outcome

    def close(self) -> None:
        """Stop beginning steps."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def go_on(end: ssl.SSLObject) -> bool:
    """Do the next step of a handshake: whether it was the last. Raises ssl.SSLError."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
