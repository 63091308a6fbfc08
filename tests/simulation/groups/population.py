"""The members of one group: they come, leave, sleep longer than their session, and die."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import TYPE_CHECKING

from broker.network.links import LinkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.groups.member import Traveller

LIFE_SECONDS = 1.0, 12.0
ABSENCE_SECONDS = 0.1, 3.0
SLEEP_SECONDS = 0.5, 9.0
ENDS = "leaves", "leaves", "dies", "dies", "sleeps", "sleeps"
TICK_SECONDS = 0.1


class Population:
    """So many members at a time."""

    def __init__(
        self, cluster: SimulatedCluster, group_id: str, make: Callable[[str], Traveller], size: int
    ) -> None:
        self.group_id = group_id
        self.present: dict[int, Traveller] = {}
        """By slot."""
        self.is_done = False
        """Set when whoever is there is to stay."""
        self._cluster = cluster
        self._make = make
        self._size = size
        self._random = Random(f"{group_id}-{cluster.random.random()}")

    async def run(self) -> None:
        """Have members until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for slot in range(self._size):
                group.create_task(self._fill(slot))

    def calm(self) -> None:
        """Nobody goes any more, and every answer is waited for."""
        self.is_done = True
        for member in self.present.values():
            member.is_done = True
            member.sleeps_until = 0.0

    async def _fill(self, slot: int) -> None:
        lives = 0
        await self._pass(self._random.uniform(0.0, 2.0))
        while True:
            lives += 1
            member = self.present[slot] = self._make(f"{self.group_id}-{slot}-{lives}")
            member.is_done = self.is_done
            task = asyncio.get_running_loop().create_task(member.run())
            try:
                await self._live(member, task)
            finally:
                task.cancel()
                await asyncio.wait({task})
            await self._pass(self._random.uniform(*ABSENCE_SECONDS))

    async def _live(self, member: Traveller, task: asyncio.Task[None]) -> None:
        """One life; what the member raises comes out here."""
        while True:
            end = self._cluster.loop.now + self._random.uniform(*LIFE_SECONDS)
            while self.is_done or self._cluster.loop.now < end:
                await asyncio.wait({task}, timeout=TICK_SECONDS)
                if task.done():
                    task.result()
            kind = self._random.choice(ENDS)
            self._cluster.note(f"{member.name} {kind}")
            if kind == "sleeps":
                seconds = self._random.uniform(*SLEEP_SECONDS)
                member.sleeps_until = self._cluster.loop.now + seconds
                continue
            if kind == "dies":
                member.die()
            else:
                member.must_end = True
                await task
                with contextlib.suppress(LinkError):
                    await member.leave()
                member.die()
            return

    async def _pass(self, seconds: float) -> None:
        end = self._cluster.loop.now + seconds
        while self._cluster.loop.now < end and not self.is_done:
            await asyncio.sleep(TICK_SECONDS)
