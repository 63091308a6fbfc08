"""Delayed fetches that wait for one partition: all look again once, however much was appended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.runtime.timers import Timers

logger = logging.getLogger(__name__)


class Watcher(Protocol):
    """One that waits for more records, such as a delayed fetch."""

    def check(self) -> None:
        """Look again: records were appended, or leadership or the log's start has changed."""
        ...


class Watchers:
    """Fetches of one kind, readers or followers, in order of arrival."""

    __slots__ = ("_is_wake_scheduled", "_name", "_timers", "waiting")

    def __init__(self, name: str, timers: Timers | None) -> None:
        """`name` is the partition's, for the log. Without timers, no watcher may wait."""
        self._name = name
        self._timers = timers
        self.waiting: dict[Watcher, None] = {}
        """A dict, not a set: a simulated run must not depend on addresses in memory."""
        self._is_wake_scheduled = False

    def wake(self) -> None:
        """Have all check again, after the current callback."""
        if self.waiting and not self._is_wake_scheduled:
            assert self._timers is not None, "one waits with all partitions"
            self._is_wake_scheduled = True
            self._timers.soon(self._wake_now)

    def _wake_now(self) -> None:
        """Call each; one that raises is dropped, and costs the others nothing."""
        self._is_wake_scheduled = False
        for watcher in tuple(self.waiting):
            try:
                watcher.check()
            except Exception:
                logger.exception("%s: delayed fetch dropped", self._name)
                self.waiting.pop(watcher, None)


NOBODY_WATCHES = Watchers("", None)
"""Shared by partitions without a watcher so far: of 50,000, most."""
