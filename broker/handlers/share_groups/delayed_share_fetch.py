"""A share fetch that waits: for records to come or to be released, or for `max_wait_ms` to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.runtime.deferred import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.handlers.share_groups.share_read import Fetched
    from broker.partitions.looks_in_turn import Look, LooksInTurn
    from broker.partitions.watchers import Watcher
    from broker.runtime.timers import Timers


class Watched(Protocol):
    """Object that a fetch may wait for."""

    def watch(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when there may be more."""

    def unwatch(self, watcher: Watcher) -> None:
        """The opposite."""


class Read(Protocol):
    """One share fetch's pass over its partitions, which can be repeated."""

    @property
    def is_satisfied(self) -> bool:
        """True if the response is due."""

    @property
    def max_wait_ms(self) -> int:
        """Longest wait."""

    def run(self) -> None:
        """Look at all partitions again."""

    def watched(self) -> Sequence[Watched]:
        """Partitions that can satisfy the request."""

    def acquired(self) -> Fetched:
        """Records acquired from the last pass."""


class DelayedShareFetch:
    """Waits no longer than the read says."""

    __slots__ = ("_looks", "_read", "_timer", "_watched", "deferred")

    def __init__(self, timers: Timers, looks: LooksInTurn, read: Read) -> None:
        self.deferred: Deferred[Fetched] = Deferred(on_abandon=self._forget)
        self._looks = looks
        self._read = read
        self._watched = read.watched()
        for each in self._watched:
            each.watch(self)
        self._timer = timers.schedule(read.max_wait_ms, lambda: self._guarded(self._expire))

    def check(self) -> None:
        """Something has changed: look again soon, after all that has in this turn."""
        if not self.deferred.is_complete:
            self._looks.add(self)

    def look(self) -> Look:
        """Look again, and answer if there is enough; at once, as one request reads few partitions.

        See `share_read.MOST_PARTITIONS`.
        """
        count = len(self._watched)
        self._guarded(self._look)
        yield count

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step; an error that it raises is the answer, and does not reach the caller."""
        if self.deferred.is_complete:
            return
        try:
            step()
        except Exception as error:  # noqa: BLE001 - delivered
            self._forget()
            self.deferred.fail(error)

    def _look(self) -> None:
        self._read.run()
        if self._read.is_satisfied:
            self._complete()

    def _expire(self) -> None:
        self._read.run()
        self._complete()

    def _complete(self) -> None:
        self._forget()
        self.deferred.complete(self._read.acquired())

    def _forget(self) -> None:
        self._timer.cancel()
        self._looks.drop(self)
        for each in self._watched:
            each.unwatch(self)
