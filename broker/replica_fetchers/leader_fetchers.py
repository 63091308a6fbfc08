"""One of a broker's fetchers for one leader, and a second one for replicas that are far behind.

What is behind comes in megabytes, and an answer is not used before its last byte has come. So a
replica that lacks something committed is fetched over a connection of its own, beside those that
keep up: what producers wait for does not queue behind it.

A replica that has caught up goes back when the first fetcher asks next, so that there is no time
in which nobody asks for it: its leader may have let it into the in-sync set already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio

    from broker.partitions.partition import Partition
    from broker.replica_fetchers.fetcher import Lane, ReplicaFetcher


class Running(NamedTuple):
    """A fetcher at work."""

    fetcher: ReplicaFetcher
    task: asyncio.Task[object]

    def end(self) -> None:
        """Fetch nothing more."""
        self.task.cancel()
        self.fetcher.close()


class Start(Protocol):
    """Starts a fetcher for a lane."""

    def __call__(self, lane: Lane, *, is_for_those_behind: bool) -> Running:
        """Return it, at work."""


class LeaderFetchers:
    """Partitions that are fetched from one leader, each by one of two fetchers."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._main = start(self, is_for_those_behind=False)
        self._aside: Running | None = None
        self._behind: dict[Partition, None] = {}
        """Those that are fetched aside."""
        self._returning: dict[Partition, None] = {}
        """Those of them that have caught up."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing left to follow."""
        return not self._behind and self._main.fetcher.is_idle

    def follow(self, partition: Partition) -> None:
        """Begin, or go on in a new leader epoch."""
        if self._aside is not None and partition in self._behind:
            self._aside.fetcher.follow(partition)
        else:
            self._main.fetcher.follow(partition)

    def leave(self, partition: Partition) -> None:
        """Follow this partition no more."""
        self._main.fetcher.leave(partition)
        self._end_aside(partition)

    def end(self) -> None:
        """Follow nothing any more."""
        self._main.end()
        if self._aside is not None:
            self._aside.end()

    def before_asking(self, fetcher: ReplicaFetcher) -> None:
        """Take back what has caught up, now that it need not wait."""
        if self._returning and fetcher is self._main.fetcher:
            for partition in tuple(self._returning):
                self._end_aside(partition)
                fetcher.follow(partition, is_caught_up=True)

    def found(self, fetcher: ReplicaFetcher, partition: Partition, *, is_behind: bool) -> None:
        """Set aside what is behind; note what has caught up."""
        if fetcher is self._main.fetcher:
            if is_behind:
                fetcher.leave(partition)
                self._set_aside(partition)
        elif partition in self._behind and not is_behind:
            self._returning[partition] = None
            self._main.fetcher.wake()

    def _set_aside(self, partition: Partition) -> None:
        if self._aside is None:
            self._aside = self._start(self, is_for_those_behind=True)
        self._behind[partition] = None
        self._aside.fetcher.follow(partition)

    def _end_aside(self, partition: Partition) -> None:
        if self._aside is None or partition not in self._behind:
            return
        del self._behind[partition]
        self._returning.pop(partition, None)
        self._aside.fetcher.leave(partition)
        if not self._behind:
            aside, self._aside = self._aside, None
            aside.end()
