"""Fetches that wait, and look again: once for all that has woken them, some in each turn.

One produce request may wake two hundred partitions, and a thousand fetches may wait for each. What
one of them has to do is look at all its partitions: a millisecond or two for hundreds, a second for
a hundred thousand. So a fetch that is woken again before it has looked does not look twice, and
others are served between the looks of many, and within the look of one that has many partitions:

    due                      a turn of 400 partitions
    A of 1000, B of 10       400 of A
    B, A from 400 on         B, 390 of A
    A from 790 on            the rest of A

One that is woken while it looks has seen some of its partitions as they were, and looks again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from broker.runtime.timers import Timers

WATCHED_AT_ONCE: Final = 400
"""Partitions that are looked at in one turn of the event loop, and share groups in them.

Fixed: four hundred take a few milliseconds."""

Look = Generator[int, None, None]
"""One that pauses now and then, and says how many partitions it has looked at since."""


class Looker(Protocol):
    """A fetch that waits."""

    def look(self) -> Look:
        """Look at all its partitions. Raises nothing."""
        ...


class LooksInTurn:
    """Woken fetches of one broker, in the order of their waking."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._due: dict[Looker, Look | None] = {}
        """Each with its look, once that has begun."""
        self._again: dict[Looker, None] = {}
        """Fetches woken again since their look began."""
        self._is_scheduled = False

    def add(self, looker: Looker) -> None:
        """Have it look soon."""
        if self._due.get(looker) is not None:
            self._again[looker] = None
            return
        self._due[looker] = None
        self._schedule()

    def drop(self, looker: Looker) -> None:
        """Drop a fetch that no longer waits."""
        self._again.pop(looker, None)
        look = self._due.pop(looker, None)
        if look is not None:
            look.close()

    def _schedule(self) -> None:
        if self._due and not self._is_scheduled:
            self._is_scheduled = True
            self._timers.soon(self._look)

    def _look(self) -> None:
        left = WATCHED_AT_ONCE
        try:
            while self._due and left > 0:
                looker = next(iter(self._due))
                look = self._due.pop(looker) or looker.look()
                left = self._go_on(looker, look, left)
        finally:
            self._is_scheduled = False
            self._schedule()

    def _go_on(self, looker: Looker, look: Look, left: int) -> int:
        """Let it look at about `left` partitions; returns how many are left for others."""
        for count in look:
            left -= count
            if left <= 0:
                self._due[looker] = look  # behind the others
                return left
        if looker in self._again:
            del self._again[looker]
            self._due[looker] = None
        return left
