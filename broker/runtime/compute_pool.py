"""Threads for computations that would block the event loop for too long.

For code that releases the GIL while it computes, as the compression libraries do; other code would
block the loop from there just as well. The pool in `broker.startup.logs` is for waits for the disk,
and computations must not queue behind these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker.runtime.deferred import Deferred, settle

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker.runtime.platform import Platform

T = TypeVar("T")

THREADS = 2
"""Number of concurrent computations. The queue is bounded by its users: a connection has one
request in work.
"""


class ComputePool:
    """Runs functions on its threads and hands the results to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, platform: Platform) -> None:
        self._loop = loop
        self._is_closed = False
        self._executor = platform.threads(THREADS, "compute")

    def run(self, work: Callable[[], T]) -> Deferred[T]:
        """Call `work` on a thread; its result or error, on the loop.

        Nothing arrives after `close`: the logs may be closed by then.
        """
        outcome: Deferred[T] = Deferred()

        def finish(done: asyncio.Future[T]) -> None:
            if not self._is_closed:
                settle(outcome, done)

        self._loop.run_in_executor(self._executor, work).add_done_callback(finish)
        return outcome

    async def result(self, work: Callable[[], T]) -> T:
        """As `run`, for a coroutine: return the result or raise the error."""
        arrived: asyncio.Future[T] = self._loop.create_future()

        def give(value: T) -> None:
            if not arrived.done():  # cancelled, with the callback pending
                arrived.set_result(value)

        def fail(error: Exception) -> None:
            if not arrived.done():
                arrived.set_exception(error)

        self.run(work).then(give, fail)
        return await arrived

    def close(self) -> None:
        """Finish work under way, start no more, and report none."""
        self._is_closed = True
        self._executor.shutdown(cancel_futures=True)
