"""Keeps the broker's own tasks going: no unforeseen error ends one of them for good.

    keep(name, work)      work that must not end: restarted, after a pause, whenever it raises
    spawn(work, name)     work that ends by itself; an exception is noted and ends nothing else
    note(name, error)     for other background work: counts a failure, and logs its traceback

A pause begins short and doubles up to a bound, so that a transient fault costs little time and a
lasting one little work. Each error is logged once, with its traceback, and afterwards counted only
(`failures`, which the metrics show): an error at every turn would bury the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers

logger = logging.getLogger(__name__)

FIRST_PAUSE_MS: Final = 100
LONGEST_PAUSE_MS: Final = 10_000
"""Work that went on for longer than this before it failed gets the first pause again."""
ERRORS_LOGGED: Final = 1_000
"""Number of distinct errors logged in the broker's life; all others are counted."""
ONE_TIME: Final = "one-time work"
"""Name under which tasks that end by themselves are counted: their own may be those of topics."""

T = TypeVar("T")


class TaskMaker(Protocol):
    """A task group, or an event loop."""

    def create_task(
        self, coro: Coroutine[Any, Any, object], *, name: str | None = None
    ) -> asyncio.Task[object]:
        """Run a coroutine as a task."""
        ...


class Supervision:
    """Owns the tasks of one broker."""

    def __init__(self, group: TaskMaker, timers: Timers, clock: Clock) -> None:
        """`group` waits for the tasks in the end."""
        self._group = group
        self.failures: Counter[str] = Counter()
        """Errors so far, by the name of the work that met them; any thread may read."""
        self.timers = timers
        self._clock = clock
        self._tasks: dict[asyncio.Task[object], None] = {}
        self._is_over = False
        self._logged: set[tuple[object, ...]] = set()

    def spawn(self, work: Coroutine[Any, Any, object], name: str) -> asyncio.Task[object]:
        """Run a coroutine in the background; an error is noted and ends nothing else.

        It is cancelled when the broker stops, at once if it stops already: then the group need not
        wait for it, and could not if it has ended.
        """
        maker = asyncio.get_running_loop() if self._is_over else self._group
        task = maker.create_task(self._attempt(work, name), name=name)
        if self._is_over:
            task.cancel()
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        task.add_done_callback(lambda _: work.close())  # for one cancelled before it began
        return task

    def keep(
        self, name: str, work: Callable[[], Coroutine[Any, Any, object]]
    ) -> asyncio.Task[object]:
        """Run `work()` in the background until it returns, however often it has to be begun."""
        return self.spawn(self.persist(name, work), name)

    async def persist(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for `work()` as `keep` does; return its result."""
        pause_ms = FIRST_PAUSE_MS
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                return await work()
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                self.note(name, error)  # its awaitable was cancelled, not this task
            except Exception as error:  # noqa: BLE001 - noted
                self.note(name, error)
            if self._clock.monotonic_ms() - began_ms > LONGEST_PAUSE_MS:
                pause_ms = FIRST_PAUSE_MS
            await self.timers.sleep(pause_ms)
            pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)

    def note(self, name: str, error: BaseException, kind: str = "") -> None:
        """Count a failure as one of `kind`, or of `name`; log it, if it is the first of its like.

        Errors are alike when the same work raised the same type at the same line.
        """
        kind = kind or name
        self.failures[kind] += 1
        like = (kind, type(error), *_place(error))
        if like not in self._logged and len(self._logged) < ERRORS_LOGGED:
            self._logged.add(like)
            logger.error("%s failed", name, exc_info=error)

    def close(self) -> None:
        """Cancel all tasks, and those that are yet to come."""
        self._is_over = True
        for task in tuple(self._tasks):
            task.cancel()

    async def _attempt(self, work: Coroutine[Any, Any, object], name: str) -> object:
        try:
            return await work
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            self.note(name, error, ONE_TIME)
        except Exception as error:  # noqa: BLE001 - noted
            self.note(name, error, ONE_TIME)
        return None


def log_failure(name: str, error: BaseException, kind: str = "") -> None:  # noqa: ARG001
    """Stand for `Supervision.note` where there is nothing to count for."""
    logger.error("%s failed", name, exc_info=error)


def _is_cancelled() -> bool:
    """Return whether the current task is cancelled itself, and not only its awaitable."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _place(error: BaseException) -> tuple[str, int]:
    """Place where an error was raised: file and line."""
    traceback = error.__traceback__
    if traceback is None:
        return "", 0
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
