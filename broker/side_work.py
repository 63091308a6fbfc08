"""Work that computes for longer than the event loop may be held up: on threads beside it.

For what releases Python's lock while it computes, as the compression libraries do; anything else
would hold the loop up from there just as well. The pool of `broker.app` is for what waits for the
disk, and computing must not queue behind that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from broker.platform import Platform

T = TypeVar("T")

THREADS = 2
"""As many compress at once. What waits for one of them is bounded by its askers: a connection has
one request in work."""


class SideWork:
    """Runs functions on its threads and hands the results to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, platform: Platform) -> None:
        self._loop = loop
        self._is_closed = False
        self._executor = platform.threads(THREADS, "compute")

    def run(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Call `work`, which raises nothing, on a thread; `then` gets its result, on the loop.

        Not after `close`: then there may be no logs any more.
        """
        future = self._loop.run_in_executor(self._executor, work)

        def finish(done: asyncio.Future[T]) -> None:
            if not (done.cancelled() or self._is_closed):
                then(done.result())

        future.add_done_callback(finish)

    def close(self) -> None:
        """Finish what is being computed, start nothing more, and tell nobody."""
        self._is_closed = True
        self._executor.shutdown(cancel_futures=True)
