"""The faults of a run and their times: each kind at its own rate, which may be zero."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.machine.ensemble import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.simulation.cluster import Machine, SimulatedCluster

RECOVERY_SECONDS = 60.0
"""Longest recovery from a power failure, before other faults happen again."""


@dataclass
class Faults:
    """Rates of faults, per throw of the dice; each may be zero (swarm testing)."""

    kill: float = 0.0
    power: float = 0.0
    cut: float = 0.0
    freeze: float = 0.0
    stop: float = 0.0
    zookeeper: float = 0.0
    blackout: float = 0.0
    """All machines lose power; only where every record is flushed before it is acknowledged."""
    exile: float = 0.0
    """The controller, or a leader, misses its session, and the others go on without it."""
    reset: float = 0.0
    """A connection is broken off, whatever is under way on it."""
    controller: float = 0.0
    """Somebody takes `/controller` away; the one who held it may be asleep, its session alive."""

    @classmethod
    def draw(cls, random: Random) -> Faults:
        rates = (0.0, 0.0, 0.05, 0.2)
        return cls(
            kill=random.choice(rates),
            power=random.choice((0.0, 0.0, 0.1)),
            cut=random.choice(rates),
            freeze=random.choice(rates),
            stop=random.choice(rates),
            zookeeper=random.choice((0.0, 0.0, 0.05)),
            blackout=random.choice((0.0, 0.0, 0.0, 0.05)),
            exile=random.choice(rates),
            reset=random.choice((0.0, 0.2, 0.9)),
            controller=random.choice(rates),
        )

    def scaled(self, factor: float) -> Faults:
        """The same, more or less often."""
        return Faults(**{kind: rate * factor for kind, rate in vars(self).items()})


class Schedule:
    """Causes faults on a cluster until it is told to heal it."""

    def __init__(
        self, cluster: SimulatedCluster, faults: Faults, is_in_sync: Callable[[], bool]
    ) -> None:
        self.faults = faults
        self.is_over = False
        self._cluster = cluster
        self._loop = cluster.loop
        self._random = cluster.random
        self._is_in_sync = is_in_sync

    async def run(self, seconds: float, is_broken: Callable[[], bool]) -> None:
        """Throw the dice for so long, or until a promise is broken."""
        end = self._loop.now + seconds
        while self._loop.now < end and not is_broken():
            await asyncio.sleep(self._random.uniform(0.05, 0.5))
            for kind, rate in vars(self.faults).items():
                if self._random.random() < rate:
                    await getattr(self, f"_{kind}")()

    def heal(self) -> None:
        """End all faults; brokers that are down start when they would have."""
        self._cluster.note("all faults are over")
        self._cluster.network.heal()
        self._cluster.zookeeper.is_down = False
        self._cluster.are_disks_busy = False
        self._cluster.last_thaw = self._loop.now
        for machine in self._cluster.machines:
            if machine.host is not None:
                self._loop.thaw(machine.host)

    # Kinds

    async def _kill(self) -> None:
        up = self._up()
        if up:
            self._end(self._random.choice(up), power=False)

    async def _power(self) -> None:
        """One machine loses power while nothing else is wrong, and until all is well again.

        More is not promised: what two brokers have not yet written to their disks is lost when
        both stop before the death of either is noticed. So is what one has not written when all
        others leave in order before its death is noticed, as nobody but it is in sync then.
        """
        if not self._is_well():
            return
        up = self._up()
        machine = self._random.choice(up)
        if all(other.is_stopping for other in up if other is not machine):
            return
        self._end(machine, power=True)
        # Until its session is over nobody knows, and the in-sync sets still have it.
        await asyncio.sleep(3 * self._cluster.session_seconds)
        end = self._loop.now + RECOVERY_SECONDS
        while not self._is_well() and self._loop.now < end:
            await asyncio.sleep(0.1)

    async def _blackout(self) -> None:
        for machine in self._up():
            self._end(machine, power=True)

    async def _stop(self) -> None:
        up = self._up()
        if up:
            machine = self._random.choice(up)
            self._cluster.note(f"{machine.name} is stopped")
            machine.stop()
            self._start_later(machine)

    async def _freeze(self) -> None:
        up = self._up()
        if up:
            longest = 2.0 * self._cluster.session_seconds
            self._put_to_sleep(self._random.choice(up), self._random.uniform(0.1, longest))

    async def _cut(self) -> None:
        names = [machine.name for machine in self._cluster.machines]
        first, second = self._random.sample([*names, ZOOKEEPER], 2)
        links = [(first, second), (second, first)]
        if self._random.random() < 0.5:
            links.pop()
        self._part(links, self._random.uniform(0.1, 3.0 * self._cluster.session_seconds))

    async def _zookeeper(self) -> None:
        zookeeper = self._cluster.zookeeper
        seconds = self._random.uniform(0.1, 8.0)
        self._cluster.note(f"ZooKeeper is down for {seconds:.1f} s")
        zookeeper.is_down = True
        self._loop.call_later(seconds, lambda: setattr(zookeeper, "is_down", False))

    async def _exile(self) -> None:
        up = self._up()
        holder = self._cluster.controller()
        if not up:
            return
        is_holder = holder in up and self._random.random() < 0.7
        machine = holder if holder is not None and is_holder else self._random.choice(up)
        seconds = self._cluster.session_seconds * self._random.uniform(1.0, 2.5)
        if self._random.random() < 0.5:
            self._put_to_sleep(machine, seconds)
        else:
            self._part([(machine.name, ZOOKEEPER), (ZOOKEEPER, machine.name)], seconds)

    async def _reset(self) -> None:
        ends = [end for machine in self._up() if machine.host for end in machine.host.ends]
        if ends:
            self._cluster.network.break_off(self._random.choice(ends))

    async def _controller(self) -> None:
        holder = self._cluster.controller()
        if holder is None or holder not in self._up() or self._cluster.zookeeper.is_down:
            return
        if self._random.random() < 0.6:
            longest = 0.9 * self._cluster.session_seconds
            self._put_to_sleep(holder, self._random.uniform(0.1, longest))
        self._cluster.note(f"{holder.name} is deposed")
        await self._cluster.zookeeper.depose()

    # What they are made of

    def _up(self) -> list[Machine]:
        return [machine for machine in self._cluster.machines if machine.is_up]

    def _end(self, machine: Machine, *, power: bool) -> None:
        self._cluster.note(f"{machine.name} {'loses power' if power else 'is killed'}")
        machine.kill(power=power)
        self._start_later(machine)

    def _put_to_sleep(self, machine: Machine, seconds: float) -> None:
        host = machine.host
        assert host is not None
        self._cluster.note(f"{machine.name} is frozen for {seconds:.1f} s")
        host.is_frozen = True
        host.frozen_until = max(host.frozen_until, self._loop.now + seconds)
        self._cluster.last_thaw = max(self._cluster.last_thaw, host.frozen_until)

        def thaw() -> None:
            if self._loop.now >= host.frozen_until:
                self._loop.thaw(host)

        self._loop.call_at(self._loop.now + seconds, thaw)

    def _part(self, links: list[tuple[str, str]], seconds: float) -> None:
        self._cluster.note(f"cut {links} for {seconds:.1f} s")
        self._cluster.network.cut(links, seconds)

    def _start_later(self, machine: Machine) -> None:
        def start() -> None:
            if self.is_over:
                return
            if not machine.is_up:
                self._cluster.note(f"{machine.name} starts")
                machine.start()
            elif machine.is_stopping:
                self._loop.call_later(0.5, start)

        longest = 2.0 * self._cluster.session_seconds
        self._loop.call_later(self._random.uniform(0.1, longest), start)

    def _is_well(self) -> bool:
        cluster = self._cluster
        hosts = [machine.host for machine in cluster.machines]
        return (
            all(host is not None and not host.is_dead and not host.is_frozen for host in hosts)
            and cluster.network.is_whole
            and not cluster.zookeeper.is_down
            and self._is_in_sync()
        )
