"""Main fetcher of a broker for one leader, and others beside it for partitions that would delay it.

A replica that is behind fetches megabytes, and an answer is not used before its last byte has come.
So a replica that lacks committed records is fetched over a connection of its own: records that
producers wait for do not queue behind it.

Nor do they queue behind a disk: replicas that have to be flushed before their next fetch
(`own_flushes`) have a fetcher of their own, which waits for all of them together.

A replica that has caught up returns when its own fetcher is about to ask, so that it is never left
unfetched: its leader may have added it to the in-sync set already.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.replica_fetchers.own_flushes import awaits_flushes

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


class Purpose(enum.Enum):
    """Purpose of a fetcher; the value is part of its connection's name."""

    MAIN = ""
    BEHIND = "-behind"
    FLUSHED = "-flushed"


class Start(Protocol):
    """Starts a fetcher for a lane."""

    def __call__(self, lane: Lane, purpose: Purpose) -> Running:
        """Return it, at work."""


class LeaderFetchers:
    """Partitions that are fetched from one leader, each by one of three fetchers."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._main = start(self, Purpose.MAIN)
        self._flushed: Running | None = None
        self._aside: Running | None = None
        self._behind: dict[Partition, None] = {}
        """Partitions fetched by the fetcher for those behind."""
        self._returning: dict[Partition, None] = {}
        """Partitions of these that have caught up."""

    @property
    def is_idle(self) -> bool:
        """True if there is nothing left to follow."""
        return not self._behind and self._flushed is None and self._main.fetcher.is_idle

    def follow(self, partition: Partition) -> None:
        """Begin, or go on in a new leader epoch."""
        if self._aside is not None and partition in self._behind:
            self._aside.fetcher.follow(partition)
        else:
            home = self._home(partition)
            self._leave_others(home, partition)
            home.follow(partition)

    def leave(self, partition: Partition) -> None:
        """Stop following this partition."""
        self._leave_others(None, partition)
        self._end_aside(partition)

    def end(self) -> None:
        """Stop following everything."""
        for running in (self._main, self._flushed, self._aside):
            if running is not None:
                running.end()

    def before_asking(self, fetcher: ReplicaFetcher) -> None:
        """Take back partitions that have caught up, now that they need not wait."""
        if self._returning and (self._aside is None or fetcher is not self._aside.fetcher):
            for partition in tuple(self._returning):
                if self._home(partition) is fetcher:
                    self._end_aside(partition)
                    fetcher.follow(partition, is_caught_up=True)

    def found(self, fetcher: ReplicaFetcher, partition: Partition, *, is_behind: bool) -> None:
        """Set aside a partition that is behind; note one that has caught up."""
        if self._aside is None or fetcher is not self._aside.fetcher:
            if is_behind:
                fetcher.leave(partition)
                self._set_aside(partition)
        elif partition in self._behind and not is_behind:
            self._returning[partition] = None
            self._home(partition).wake()

    def _home(self, partition: Partition) -> ReplicaFetcher:
        """The fetcher of a replica that keeps up."""
        if not awaits_flushes(partition):
            return self._main.fetcher
        if self._flushed is None:
            self._flushed = self._start(self, Purpose.FLUSHED)
        return self._flushed.fetcher

    def _leave_others(self, home: ReplicaFetcher | None, partition: Partition) -> None:
        """Have it fetched by `home` alone, of those for replicas that keep up."""
        if home is not self._main.fetcher:
            self._main.fetcher.leave(partition)
        if self._flushed is not None and home is not self._flushed.fetcher:
            self._flushed.fetcher.leave(partition)
            if self._flushed.fetcher.is_idle:
                flushed, self._flushed = self._flushed, None
                flushed.end()

    def _set_aside(self, partition: Partition) -> None:
        if self._aside is None:
            self._aside = self._start(self, Purpose.BEHIND)
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
