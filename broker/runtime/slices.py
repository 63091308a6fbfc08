"""Long work on the event loop, done in slices: others wait no longer than the budget.

All long work of a broker takes turns. Between two looks at the sockets one piece of it goes on, for
at most `BUDGET_MS`, however many pieces are under way: fifty partitions of offsets loaded at the
same time delay others no longer than one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator

BUDGET_MS: Final = 5
"""Longest slice. A request that arrives during one waits for it and the next one: 10 ms."""

T = TypeVar("T")


class Turns:
    """Turns of long work; one object for each event loop."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        """`stopwatch()` gives seconds since some moment."""
        self.stopwatch = stopwatch
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    def slices(self) -> Slices:
        """For one piece of work that is about to begin."""
        return Slices(self)

    async def take(self) -> None:
        """Return in a turn of the loop that no other long work has had; others go first."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if not self._is_taken:
            self._pass_on()
        await turn

    def take_at_once(self) -> bool:
        """Take this turn of the loop if it is free; return whether it was."""
        if self._is_taken:
            return False
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._pass_on)
        return True

    def _pass_on(self) -> None:
        """Wake one that waits, in the next turn of the loop, and another in the one after that."""
        self._is_taken = bool(self._waiting)
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # the waiter may have been cancelled
                turn.set_result(None)
                break
        if self._is_taken:
            asyncio.get_running_loop().call_soon(self._pass_on)


class Slices:
    """One piece of work; made by `Turns.slices`, and an implementation of the controller's port."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._stopwatch = turns.stopwatch
        self._ends_at: float | None = None
        self._looked_at = 0.0
        self._longest_step = 0.0

    def each(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The same items; between two of them, at the end of a slice, others are served first.

        The next item is generated after that, so a generator may decide by the state then. `items`
        must tolerate changes: pass a copy if others modify it.
        """
        return _Items(self, iter(items))

    async def give_way(self) -> None:
        """Call it before each step: has others served first, unless the step fits in the slice."""
        if not self._may_go_on():
            await self._turn()

    def _may_go_on(self) -> bool:
        """Return whether a step as long as the longest so far ends within the budget."""
        now = self._stopwatch()
        if self._ends_at is None:
            if not self._turns.take_at_once():
                return False
            self._begin(now)
            return True
        self._longest_step = max(self._longest_step, now - self._looked_at)
        self._looked_at = now
        return now + self._longest_step < self._ends_at

    async def _turn(self) -> None:
        await self._turns.take()
        self._begin(self._stopwatch())

    def _begin(self, now: float) -> None:
        self._looked_at = now
        self._ends_at = now + BUDGET_MS / 1000
        self._longest_step = 0.0


class _Items(AsyncIterator[T]):
    """Not an async generator: one of those that is left early has to be closed by a task."""

    __slots__ = ("_remaining", "_slices")

    def __init__(self, slices: Slices, remaining: Iterator[T]) -> None:
        self._slices = slices
        self._remaining = remaining

    async def __anext__(self) -> T:
        await self._slices.give_way()
        try:
            return next(self._remaining)
        except StopIteration:
            raise StopAsyncIteration from None


class Leftovers:
    """Cleanup after ended work, which nothing waits for: done in one task while there is any."""

    def __init__(
        self,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        slices: Callable[[], Slices],
    ) -> None:
        """`spawn` owns the task; see `BackgroundLoop`."""
        self._spawn = spawn
        self._slices = slices
        self._waiting: deque[Iterator[None]] = deque()
        self._is_busy = False

    def add(self, steps: Iterator[None]) -> None:
        """Have these steps done later; now, if the event loop has ended."""
        if not _is_running():
            at_once(steps)
            return
        self._waiting.append(steps)
        if not self._is_busy:
            self._is_busy = True
            self._spawn(self._work(), "leftovers")

    async def _work(self) -> None:
        slices = self._slices()
        try:
            while self._waiting:
                async for _ in slices.each(self._waiting.popleft()):
                    pass
        finally:
            self._is_busy = False
            self._waiting.clear()  # of one that is cancelled: the broker stops


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def at_once(steps: Iterator[None]) -> None:
    """Do all steps now: for little, and where no event loop runs."""
    for _ in steps:
        pass
