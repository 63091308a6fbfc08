"""Share fetches that wait: how often they look again, and who is served meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from broker.handlers.share_groups.delayed_share_fetch import DelayedShareFetch
from broker.handlers.share_groups.share_read import Fetched
from broker.partitions.looks_in_turn import WATCHED_AT_ONCE, LooksInTurn
from broker.partitions.watchers import Watchers
from broker.runtime.timers import Timers
from tests.controller.harness import turns
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.partitions.watchers import Watcher


class Watched:
    """A partition that can wake those who wait for it."""

    def __init__(self, timers: Timers) -> None:
        self.watchers = Watchers("orders-0", timers)

    def watch(self, watcher: Watcher) -> None:
        self.watchers.waiting[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.waiting.pop(watcher, None)


class CountedRead:
    """Read that counts the looks at its partitions; finds something in the last of so many."""

    max_wait_ms = 60_000

    def __init__(self, partitions: Sequence[Watched], looks_needed: int) -> None:
        self.partitions = partitions
        self.looks = 0
        self._looks_needed = looks_needed

    @property
    def is_satisfied(self) -> bool:
        return self.looks >= self._looks_needed

    def run(self) -> None:
        self.looks += 1

    def watched(self) -> Sequence[Watched]:
        return self.partitions

    def acquired(self) -> Fetched:
        return Fetched({}, {})


def test_a_fetch_looks_once_however_many_partitions_have_woken_it() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        partitions = [Watched(timers) for _ in range(50)]
        read = CountedRead(partitions, looks_needed=2)
        fetch = DelayedShareFetch(timers, LooksInTurn(timers), read)

        for look in (1, 2):
            for partition in partitions:
                partition.watchers.wake()
            await turns(5)
            assert read.looks == look

        assert fetch.deferred.is_complete
        assert not any(partition.watchers.waiting for partition in partitions)

    run_in_virtual_time(scenario())


def test_others_are_served_between_the_looks_of_many_fetches() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        looks = LooksInTurn(timers)
        partitions = [Watched(timers) for _ in range(WATCHED_AT_ONCE // 4)]
        reads = [CountedRead(partitions, looks_needed=1) for _ in range(40)]
        fetches = [DelayedShareFetch(timers, looks, read) for read in reads]
        gone, *others = fetches

        for fetch in fetches:
            fetch.check()
        gone.deferred.abandon()
        looked = []
        while not all(fetch.deferred.is_complete for fetch in others):
            looked.append(sum(read.looks for read in reads))
            await turns(1)

        steps = [later - before for before, later in itertools.pairwise(looked)]
        a_turn = WATCHED_AT_ONCE // len(partitions)
        assert max(steps) <= 2 * a_turn, "a turn of the test is two of the loop"
        assert reads[0].looks == 0

    run_in_virtual_time(scenario())
