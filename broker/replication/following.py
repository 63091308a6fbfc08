"""All that this broker follows: a fetcher for each leader, and for each of `num.replica.fetchers`.

`Following` hears of changes of leadership and hands partitions from fetcher to fetcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from broker.replication.fetcher import FetcherSettings, ReplicaFetcher

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from broker.partition import Partition
    from broker.replication.links import Links

NOBODY = -1


class _Running(NamedTuple):
    fetcher: ReplicaFetcher
    task: asyncio.Task[object]


class Following:
    """Fetchers by leader and number."""

    def __init__(
        self,
        links: Links,
        settings: FetcherSettings,
        fetchers_per_leader: int,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[object]],
    ) -> None:
        self._links = links
        self._settings = settings
        self._fetchers_per_leader = fetchers_per_leader
        self._spawn = spawn
        self._running: dict[tuple[int, int], _Running] = {}
        self._followed: dict[Partition, tuple[int, int]] = {}

    def partition_changed(self, partition: Partition) -> None:
        """The controller gave a role, or took the replica away: follow its leader, or nobody."""
        number = (crc32(partition.topic.encode()) + partition.index) % self._fetchers_per_leader
        leader = NOBODY if partition.is_leader else partition.leader_id
        wanted = (leader, number) if leader != NOBODY else None
        current = self._followed.get(partition)
        if current is not None and current != wanted:
            del self._followed[partition]
            self._leave(partition, current)
        if wanted is not None:
            self._followed[partition] = wanted
            self._fetcher(*wanted).follow(partition)

    def use(self, fetchers_per_leader: int) -> None:
        """Spread what is followed over another number of fetchers."""
        if fetchers_per_leader != self._fetchers_per_leader:
            self._fetchers_per_leader = fetchers_per_leader
            for partition in list(self._followed):
                self.partition_changed(partition)

    def stop(self) -> None:
        """Follow nothing any more."""
        for running in self._running.values():
            running.task.cancel()
            running.fetcher.close()
        self._running.clear()
        self._followed.clear()

    def _fetcher(self, leader: int, number: int) -> ReplicaFetcher:
        running = self._running.get((leader, number))
        if running is None:
            purpose = f"broker-{self._settings.local_id}-fetcher-{number}"
            fetcher = ReplicaFetcher(leader, self._links.link(leader, purpose), self._settings)
            task = self._spawn(fetcher.run(), f"follow broker {leader}")
            running = self._running[leader, number] = _Running(fetcher, task)
        return running.fetcher

    def _leave(self, partition: Partition, key: tuple[int, int]) -> None:
        running = self._running.get(key)
        if running is None:
            return  # it left by itself, fenced, and others ended the fetcher as an idle one
        running.fetcher.leave(partition)
        if running.fetcher.is_idle:
            del self._running[key]
            running.task.cancel()
            running.fetcher.close()
