"""One run: a seed draws a cluster, its load and its faults; then everything is checked."""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import traceback
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.simulation.clients import Producer
from tests.simulation.cluster import GRAVEYARD, SimulatedCluster
from tests.simulation.ensemble import ZOOKEEPER
from tests.simulation.hosts import HOST, Host
from tests.simulation.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.partition import Partition

TOPIC = "ledger"
HEALING_SECONDS = 60.0


class Violation(AssertionError):
    """A promise was broken."""


@dataclass
class Faults:
    """How often what goes wrong, per virtual second; each may be zero (swarm testing)."""

    kill: float = 0.0
    power: float = 0.0
    cut: float = 0.0
    freeze: float = 0.0
    stop: float = 0.0
    zookeeper: float = 0.0
    blackout: float = 0.0
    """All machines lose power; only where every record is flushed before it is acknowledged."""

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
        )


@dataclass
class Watchman:
    """What must hold after every single step of a broker."""

    cluster: SimulatedCluster
    marks: dict[tuple[str, int, int], tuple[int, int]] = field(default_factory=dict)
    appenders: dict[tuple[str, int, int], str] = field(default_factory=dict)

    def look(self) -> None:
        host = HOST.get()
        for machine, partition in self.cluster.partitions():
            if host is not None and machine.host is not host:
                continue
            self._check(machine.name, machine.lives, partition)

    def _check(self, name: str, life: int, partition: Partition) -> None:
        log = partition.log
        where = f"{partition.topic}-{partition.index} on {name}"
        if log.high_watermark > log.log_end_offset:
            raise Violation(f"{where}: high watermark {log.high_watermark} > {log.log_end_offset}")
        key = (partition.topic, partition.index, hash((name, life)))
        epoch, mark = self.marks.get(key, (-1, 0))
        if partition.is_leader and epoch == partition.leader_epoch and log.high_watermark < mark:
            raise Violation(f"{where}: high watermark fell from {mark} to {log.high_watermark}")
        if partition.is_leader:
            self.marks[key] = partition.leader_epoch, log.high_watermark
            at = partition.topic, partition.index, partition.leader_epoch
            other = self.appenders.setdefault(at, name)
            if other != name:
                raise Violation(f"{where}: {other} leads in epoch {partition.leader_epoch} too")
            if partition.in_sync_replicas and partition.leader_id not in partition.in_sync_replicas:
                raise Violation(f"{where}: leader is not in sync {partition.in_sync_replicas}")
        if not set(partition.in_sync_replicas) <= set(partition.replicas):
            raise Violation(f"{where}: in sync {partition.in_sync_replicas}, not replicas")


class Run:
    """One seed."""

    def __init__(self, seed: int, seconds: float = 20.0, faults: Faults | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.seconds = seconds
        self.loop = VirtualLoop()
        self.faults = faults or Faults.draw(self.random)
        keys = {"log_flush_interval_messages": 1} if self.faults.blackout else {}
        self.cluster = SimulatedCluster(self.loop, self.random, 3, **keys)
        self.partitions = self.random.randint(1, 3)
        self.producers = [
            Producer(self.cluster, f"producer-{number}", TOPIC)
            for number in range(self.random.randint(1, 3))
        ]
        self.watchman = Watchman(self.cluster)
        self.violation: BaseException | None = None
        self.is_over = False

    def go(self) -> None:
        """Run to the end; raises Violation."""
        token_bytes, randbelow = secrets.token_bytes, secrets.randbelow
        secrets.token_bytes = lambda nbytes=32: self.random.randbytes(nbytes or 32)
        secrets.randbelow = lambda exclusive_upper_bound: self.random.randrange(  # noqa: PLW0108
            exclusive_upper_bound
        )
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._note_exception)
        self.loop.after_step = self.watchman.look
        try:
            self.loop.run_until_complete(self._main())
        except Violation as violation:
            raise Violation(f"seed {self.seed}: {violation}") from violation
        finally:
            secrets.token_bytes, secrets.randbelow = token_bytes, randbelow
            asyncio.set_event_loop(None)
            for task in asyncio.all_tasks(self.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                GRAVEYARD.append(task)
            GRAVEYARD.append(self)
        if self.violation is not None:
            raise Violation(f"seed {self.seed}: {self.violation}") from self.violation

    def _note_exception(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        shown = "".join(traceback.format_exception(error)) if error else context.get("message")
        self.cluster.note(f"exception: {shown}")
        if self.violation is None:
            self.violation = error or RuntimeError(context.get("message"))

    async def _main(self) -> None:
        self.cluster.start_all()
        clients = Host("clients")
        self.cluster.network.hosts["clients"] = clients
        context = contextvars.copy_context()
        context.run(HOST.set, clients)
        await self.loop.create_task(
            self.producers[0].create_topic(TOPIC, self.partitions, 3), context=context
        )
        tasks = [
            self.loop.create_task(producer.run(self.partitions), context=context)
            for producer in self.producers
        ]
        await self._cause_faults()
        self._heal()
        for producer in self.producers:
            producer.is_done = True
        await self._until_settled(tasks)
        await asyncio.gather(*tasks)
        self._compare()
        await self._stop_all()

    async def _stop_all(self) -> None:
        """End in order, which has to work too."""
        self.is_over = True
        for machine in self.cluster.machines:
            machine.stop()
        end = self.loop.now + HEALING_SECONDS
        while any(machine.is_up for machine in self.cluster.machines):
            await asyncio.sleep(0.1)
            if self.loop.now > end:
                raise Violation("the brokers do not stop")

    # Faults

    async def _cause_faults(self) -> None:
        random = self.random
        end = self.loop.now + self.seconds
        while self.loop.now < end and self.violation is None:
            await asyncio.sleep(random.uniform(0.05, 0.5))
            for kind, rate in vars(self.faults).items():
                if random.random() < rate:
                    await getattr(self, f"_{kind}")()

    async def _kill(self, *, power: bool = False) -> None:
        up = [machine for machine in self.cluster.machines if machine.is_up]
        if not up:
            return
        machine = self.random.choice(up)
        self.cluster.note(f"{machine.name} {'loses power' if power else 'is killed'}")
        machine.kill(power=power)
        self._start_later(machine)

    async def _power(self) -> None:
        """One machine loses power while nothing else is wrong, and until all is well again.

        More is not promised: what two brokers have not yet written to their disks is lost when
        both stop before the death of either is noticed.
        """
        if not self._is_well():
            return
        await self._kill(power=True)
        # Until its session is over nobody knows, and the in-sync sets still have it.
        await asyncio.sleep(3 * self.cluster.session_seconds)
        end = self.loop.now + HEALING_SECONDS
        while not self._is_well() and self.loop.now < end and self.violation is None:
            await asyncio.sleep(0.1)

    async def _blackout(self) -> None:
        self.cluster.note("all lose power")
        for machine in self.cluster.machines:
            if machine.is_up:
                machine.kill(power=True)
                self._start_later(machine)

    def _is_well(self) -> bool:
        cluster = self.cluster
        hosts = [machine.host for machine in cluster.machines]
        return (
            all(host is not None and not host.is_dead and not host.is_frozen for host in hosts)
            and not cluster.network.cuts
            and not cluster.zookeeper.is_down
            and not self._out_of_sync()
        )

    def _out_of_sync(self) -> bool:
        leaders = [
            one for _, one in self.cluster.partitions() if one.is_leader and one.topic == TOPIC
        ]
        return len(leaders) != self.partitions or any(
            len(one.in_sync_replicas) != 3 for one in leaders
        )

    async def _stop(self) -> None:
        up = [machine for machine in self.cluster.machines if machine.is_up]
        if up:
            machine = self.random.choice(up)
            self.cluster.note(f"{machine.name} is stopped")
            machine.stop()
            self._start_later(machine)

    async def _freeze(self) -> None:
        up = [machine for machine in self.cluster.machines if machine.is_up]
        if up:
            machine = self.random.choice(up)
            host = machine.host
            assert host is not None
            seconds = self.random.uniform(0.1, 2.0 * self.cluster.session_seconds)
            self.cluster.note(f"{machine.name} is frozen for {seconds:.1f} s")
            host.is_frozen = True
            self.loop.call_later(seconds, self.loop.thaw, host)

    async def _cut(self) -> None:
        names = [machine.name for machine in self.cluster.machines]
        first, second = self.random.sample([*names, ZOOKEEPER], 2)
        links = {(first, second), (second, first)}
        if self.random.random() < 0.5:
            links.pop()
        seconds = self.random.uniform(0.1, 3.0 * self.cluster.session_seconds)
        self.cluster.note(f"cut {sorted(links)} for {seconds:.1f} s")
        self.cluster.network.cuts |= links
        self.loop.call_later(seconds, self.cluster.network.cuts.difference_update, links)

    async def _zookeeper(self) -> None:
        zookeeper = self.cluster.zookeeper
        seconds = self.random.uniform(0.1, 8.0)
        self.cluster.note(f"ZooKeeper is down for {seconds:.1f} s")
        zookeeper.is_down = True
        self.loop.call_later(seconds, lambda: setattr(zookeeper, "is_down", False))

    def _start_later(self, machine: Any) -> None:
        def start() -> None:
            if self.is_over:
                return
            if not machine.is_up:
                self.cluster.note(f"{machine.name} starts")
                machine.start()
            elif machine.broker is not None and machine.broker._stop.is_set():
                self.loop.call_later(0.5, start)

        self.loop.call_later(self.random.uniform(0.1, 2.0 * self.cluster.session_seconds), start)

    def _heal(self) -> None:
        self.cluster.note("all faults are over")
        self.cluster.network.cuts.clear()
        self.cluster.zookeeper.is_down = False
        for machine in self.cluster.machines:
            if machine.host is not None:
                self.loop.thaw(machine.host)
        self.faults = Faults()

    # Checks

    async def _until_settled(self, tasks: list[asyncio.Task[None]]) -> None:
        """After healing all must be in sync again, within a bounded time."""
        end = self.loop.now + HEALING_SECONDS
        while True:
            await asyncio.sleep(0.5)
            if self.violation is not None:
                raise Violation(str(self.violation))
            for machine in self.cluster.machines:
                if not machine.is_up:
                    machine.start()
            problem = self._unsettled()
            if not problem and all(task.done() for task in tasks):
                return
            if self.loop.now > end:
                raise Violation(
                    f"not settled after {HEALING_SECONDS:.0f} s: {problem or 'clients'}"
                )

    def _unsettled(self) -> str:
        for index in range(self.partitions):
            replicas = [
                partition
                for _, partition in self.cluster.partitions()
                if (partition.topic, partition.index) == (TOPIC, index)
            ]
            leaders = [one for one in replicas if one.is_leader]
            if len(replicas) != 3 or len(leaders) != 1:
                return f"partition {index} has {len(replicas)} replicas, {len(leaders)} leaders"
            if len(leaders[0].in_sync_replicas) != 3:
                return f"partition {index} has only {leaders[0].in_sync_replicas} in sync"
            ends = {(one.log.high_watermark, one.log.log_end_offset) for one in replicas}
            if len(ends) != 1 or any(mark != end for mark, end in ends):
                return f"partition {index} has ends {ends}"
        return ""

    def _compare(self) -> None:
        """Same bytes everywhere, and every acknowledged record once, in order, at its offset."""
        for index in range(self.partitions):
            copies = {
                b"".join(map(bytes, _batches(partition)))
                for _, partition in self.cluster.partitions()
                if (partition.topic, partition.index) == (TOPIC, index)
            }
            if len(copies) != 1:
                raise Violation(f"replicas of partition {index} differ")
            stored = dict(_records(copies.pop()))
            values = list(stored.values())
            if len(set(values)) != len(values):
                raise Violation(f"partition {index} holds a record twice")
            for producer in self.producers:
                for offset, value in producer.acknowledged.get(index, []):
                    if stored.get(offset) != value:
                        raise Violation(
                            f"partition {index}: {value!r} was acknowledged at {offset}, "
                            f"where {stored.get(offset)!r} is"
                        )


def _batches(partition: Partition) -> Iterator[memoryview]:
    log = partition.log
    yield from log.read_batches(log.log_start_offset, log.log_end_offset)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    view = memoryview(data)
    for position, header in iterate_headers(view):
        for record in iterate_records(view[position : position + header.size_in_bytes]):
            assert record.value is not None
            yield record.offset, bytes(record.value)
