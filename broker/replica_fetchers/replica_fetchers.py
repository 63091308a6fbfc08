"""Fetchers of all followed partitions: a lane per leader, and per `num.replica.fetchers`.

`ReplicaFetchers` is notified of changes of leadership and moves partitions from lane to lane.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from broker.replica_fetchers.fetcher import FetcherSettings, Lane, ReplicaFetcher
from broker.replica_fetchers.leader_fetchers import LeaderFetchers, Purpose, Running

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from broker.network.links import Links
    from broker.partitions.partition import Partition

NOBODY = -1


class ReplicaFetchers:
    """Lanes by leader and number."""

    def __init__(
        self,
        links: Links,
        settings: FetcherSettings,
        fetchers_per_leader: int,
        keep: Callable[[str, Callable[[], Coroutine[Any, Any, None]]], asyncio.Task[object]],
    ) -> None:
        """`keep(name, work)` runs `work()` as a task that begins it again when it fails."""
        self._links = links
        self._settings = settings
        self._fetchers_per_leader = fetchers_per_leader
        self._keep = keep
        self._lanes: dict[tuple[int, int], LeaderFetchers] = {}
        self._followed: dict[Partition, tuple[int, int]] = {}

    def partition_changed(self, partition: Partition) -> None:
        """Apply a role from the controller, or a removal: follow the leader, or nobody."""
        number = (crc32(partition.topic.encode()) + partition.index) % self._fetchers_per_leader
        leader = NOBODY if partition.is_leader else partition.leader_id
        wanted = (leader, number) if leader != NOBODY else None
        current = self._followed.get(partition)
        if current is not None and current != wanted:
            del self._followed[partition]
            self._leave(partition, current)
        if wanted is not None:
            self._followed[partition] = wanted
            self._lane(*wanted).follow(partition)

    def use(self, fetchers_per_leader: int) -> None:
        """Distribute the followed partitions over another number of fetchers."""
        if fetchers_per_leader != self._fetchers_per_leader:
            self._fetchers_per_leader = fetchers_per_leader
            for partition in list(self._followed):
                self.partition_changed(partition)

    def stop(self) -> None:
        """Stop following everything."""
        for lane in self._lanes.values():
            lane.end()
        self._lanes.clear()
        self._followed.clear()

    def _lane(self, leader: int, number: int) -> LeaderFetchers:
        lane = self._lanes.get((leader, number))
        if lane is None:
            lane = self._lanes[leader, number] = LeaderFetchers(
                partial(self._start, leader, number)
            )
        return lane

    def _start(self, leader: int, number: int, lane: Lane, purpose: Purpose) -> Running:
        name = f"broker-{self._settings.local_id}-fetcher-{number}{purpose.value}"
        link = self._links.link(leader, name)
        is_for_those_behind = purpose is Purpose.BEHIND
        fetcher = ReplicaFetcher(
            leader, link, self._settings, lane, is_for_those_behind=is_for_those_behind
        )
        return Running(fetcher, self._keep(f"follow broker {leader}", fetcher.run))

    def _leave(self, partition: Partition, key: tuple[int, int]) -> None:
        lane = self._lanes.get(key)
        if lane is None:
            return  # it left by itself, fenced, and the idle lane was ended
        lane.leave(partition)
        if lane.is_idle:
            del self._lanes[key]
            lane.end()
