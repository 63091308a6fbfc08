"""Fetches that wait, and look again: once for all that has woken them, some in each turn.

One produce request may wake two hundred partitions, and a thousand fetches may wait for each. What
one of them has to do is look at all its partitions, a millisecond or two. So a fetch that is woken
again before it has looked does not look twice, and between the looks of many others are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from broker.runtime.timers import Timers

WATCHED_AT_ONCE: Final = 400
"""Partitions that are looked at in one turn of the event loop, and share groups in them.

Fixed: four hundred take a few milliseconds."""


class Looker(Protocol):
    """A fetch that waits."""

    @property
    def watched_count(self) -> int:
        """How many partitions, and share groups in them, it looks at."""
        ...

    def look(self) -> None:
        """Look at them. Raises nothing."""
        ...


class LooksInTurn:
    """Those of one broker that have been woken, in the order in which they were."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._due: dict[Looker, None] = {}
        self._is_scheduled = False

    def add(self, looker: Looker) -> None:
        """Have it look soon."""
        self._due[looker] = None
        self._schedule()

    def drop(self, looker: Looker) -> None:
        """It waits no more."""
        self._due.pop(looker, None)

    def _schedule(self) -> None:
        if self._due and not self._is_scheduled:
            self._is_scheduled = True
            self._timers.soon(self._look)

    def _look(self) -> None:
        left = WATCHED_AT_ONCE
        try:
            while self._due and left > 0:
                looker = next(iter(self._due))
                del self._due[looker]
                left -= looker.watched_count
                looker.look()
        finally:
            self._is_scheduled = False
            self._schedule()
