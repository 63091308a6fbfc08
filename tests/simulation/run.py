"""One run: a seed draws a cluster, its load and its faults; then everything is checked."""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import traceback
from random import Random
from typing import TYPE_CHECKING, Any

from broker.replication import fetcher
from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.simulation.clients import Producer
from tests.simulation.cluster import GRAVEYARD, SimulatedCluster
from tests.simulation.faults import Faults, Schedule
from tests.simulation.hosts import HOST, Host
from tests.simulation.refusals import REPORTS
from tests.simulation.virtual_loop import VirtualLoop
from tests.simulation.watchman import Violation, Watchman

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker.partition import Partition
    from controller.store import Operation

TOPIC = "ledger"
HEALING_SECONDS = 60.0


class Run:
    """One seed."""

    def __init__(self, seed: int, seconds: float = 20.0, faults: Faults | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.seconds = seconds
        self.loop = VirtualLoop()
        self.faults = faults or Faults.draw(self.random)
        fetch = Random(f"fetch-{seed}")  # its own, so that the rest of a seed stays as it was
        keys = {"replica_fetch_max_bytes": fetch.choice((300, 3000, 1 << 20))}
        if self.faults.blackout:
            keys["log_flush_interval_messages"] = 1
        self.piece_bytes = fetch.choice((1, 500, fetcher.MUCH_BYTES))
        self.cluster = SimulatedCluster(self.loop, self.random, 3, **keys)
        self.partitions = self.random.randint(1, 3)
        self.producers = [
            Producer(self.cluster, f"producer-{number}", TOPIC)
            for number in range(self.random.randint(1, 3))
        ]
        self.schedule = Schedule(self.cluster, self.faults, self._is_in_sync)
        self.watchman = Watchman(self.cluster)
        self.cluster.zookeeper.on_write = self._note_write
        self.violation: BaseException | None = None

    def go(self) -> None:
        """Run to the end; raises Violation."""
        token_bytes, randbelow = secrets.token_bytes, secrets.randbelow
        sizes = fetcher.MUCH_BYTES, fetcher.PIECE_BYTES
        fetcher.MUCH_BYTES = fetcher.PIECE_BYTES = self.piece_bytes
        secrets.token_bytes = lambda nbytes=32: self.random.randbytes(nbytes or 32)
        secrets.randbelow = lambda exclusive_upper_bound: self.random.randrange(  # noqa: PLW0108
            exclusive_upper_bound
        )
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._note_exception)
        self.loop.after_step = self.watchman.look
        REPORTS[:] = [self._note_violation]
        try:
            self.loop.run_until_complete(self._main())
        except Violation as violation:
            raise Violation(f"seed {self.seed}: {violation}") from violation
        finally:
            secrets.token_bytes, secrets.randbelow = token_bytes, randbelow
            fetcher.MUCH_BYTES, fetcher.PIECE_BYTES = sizes
            asyncio.set_event_loop(None)
            for task in asyncio.all_tasks(self.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                GRAVEYARD.append(task)
            GRAVEYARD.append(self)
        if self.violation is not None:
            raise Violation(f"seed {self.seed}: {self.violation}") from self.violation

    def _note_violation(self, text: str) -> None:
        if self.violation is None:
            self.violation = Violation(text)
            self.cluster.note(text)

    def _note_write(self, writer: str, operations: Sequence[Operation]) -> None:
        problem = self.watchman.judge_write(writer, operations)
        if problem:
            self._note_violation(problem)

    def _note_exception(self, _: Any, context: dict[str, Any]) -> None:
        if self.violation is not None:
            return  # what follows from the first one is no news
        error = context.get("exception")
        shown = "".join(traceback.format_exception(error)) if error else context.get("message")
        self.cluster.note(f"exception: {shown}")
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
        await self.schedule.run(self.seconds, lambda: self.violation is not None)
        self.schedule.heal()
        for producer in self.producers:
            producer.is_done = True
        await self._until_settled(tasks)
        await asyncio.gather(*tasks)
        self._compare()
        await self._stop_all()

    async def _stop_all(self) -> None:
        """End in order, which has to work too."""
        self.schedule.is_over = True
        for machine in self.cluster.machines:
            machine.stop()
        end = self.loop.now + HEALING_SECONDS
        while any(machine.is_up for machine in self.cluster.machines):
            await asyncio.sleep(0.1)
            if self.loop.now > end:
                raise Violation("the brokers do not stop")

    def _is_in_sync(self) -> bool:
        leaders = [
            one for _, one in self.cluster.partitions() if one.is_leader and one.topic == TOPIC
        ]
        return len(leaders) == self.partitions and all(
            len(one.in_sync_replicas) == 3 for one in leaders
        )

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
