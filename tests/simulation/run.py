"""One run: a seed draws a cluster, its load and its faults; then everything is checked."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import secrets
import traceback
from random import Random
from typing import TYPE_CHECKING, Any

from broker.network import send_queue
from broker.replica_fetchers import fetcher
from tests.simulation.checks.audit import audit
from tests.simulation.checks.deliveries import DeliveryWatch, audit_deliveries, unfinished
from tests.simulation.checks.refusals import REPORTS
from tests.simulation.checks.tracebacks import Tracebacks
from tests.simulation.checks.watchman import Violation, Watchman
from tests.simulation.clients.delayed import AGAIN, CONFIGS, DEAD, LATER, DelayedProducer
from tests.simulation.clients.operator import Operator
from tests.simulation.clients.producers import KINDS, Producer
from tests.simulation.clients.readers import Reader
from tests.simulation.clients.values import Sent
from tests.simulation.cluster import GRAVEYARD, SimulatedCluster
from tests.simulation.faults import Faults, Schedule
from tests.simulation.groups.workload import STATE, WORK, GroupWorkload, group_keys
from tests.simulation.machine.hosts import HOST, Host
from tests.simulation.machine.sockets import SOCKETS, stand_in
from tests.simulation.machine.virtual_loop import VirtualLoop
from tests.simulation.transactions.transactor import PLACES
from tests.simulation.transactions.workload import (
    STATE as TRANSACTION_STATE,
)
from tests.simulation.transactions.workload import (
    TransactionWorkload,
    transaction_keys,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.partitions.partition import Partition
    from controller.metadata_store.store import Operation
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import Machine

LEDGER = "ledger"
"""On all brokers."""
SOLO = "solo"
"""On one broker: when that is back, it leads again, and what clients sent meanwhile is for it."""
FACTORS = {LEDGER: 3, SOLO: 1}
MOVED = LATER, AGAIN, DEAD
FAULTY_SECONDS = 20.0
HEALING_SECONDS = 60.0
SCALES = 0.0, 0.2, 0.2, 1.0
"""Transactions take many requests: under all faults at once few come to their end."""
STEPS_PER_LOOK = 16
"""Groups seldom change."""
SMALL_SEGMENT, LARGE_SEGMENT = 4096, 1 << 18
SMALL_REGIONS = 0, 500, 32 * 1024, 32 * 1024
"""Sizes below which a region is sent with the bytes around it, instead of from its file."""


class Run:
    """One seed."""

    def __init__(
        self,
        seed: int,
        *,
        has_delays: bool = False,
        has_groups: bool = False,
        has_transactions: bool = False,
    ) -> None:
        """Each adds what its name says; records wait. Each makes another run of a seed."""
        self.seed = seed
        self.random = Random(seed)
        self.loop = VirtualLoop()
        self.faults = Faults.draw(self.random)
        draws = Random(f"sizes-{seed}")  # its own, so that the rest of a seed stays as it was
        lengths = draws.choice((1, 2, 3))
        keys: dict[str, int] = {
            "replica_fetch_max_bytes": draws.choice((300, 3000, 1 << 20)),
            "log_segment_bytes": SMALL_SEGMENT if lengths == 1 else LARGE_SEGMENT,
        }
        if self.faults.blackout:
            keys["log_flush_interval_messages"] = 1
        group_draws = Random(f"groups-{seed}")
        keys |= group_keys(group_draws) if has_groups else {}
        if has_transactions:
            keys |= transaction_keys()
            self.faults = self.faults.scaled(Random(f"transactions-{seed}").choice(SCALES))
        self.piece_bytes = draws.choice((1, 500, fetcher.MUCH_BYTES))
        self.region_bytes = draws.choice(SMALL_REGIONS)
        self.cluster = SimulatedCluster(self.loop, self.random, 3, **keys)
        self.cluster.length_choices = lengths
        self.cluster.beat_seconds = draws.choice((0.0, 0.0, 0.1, 0.3))
        self.cluster.network.hosts["clients"] = self.clients = Host("clients")
        self.partitions: list[At] = [(LEDGER, index) for index in range(self.random.randint(1, 2))]
        if self.faults.blackout or not self.faults.power:
            # What one broker alone has, it loses with its power, unless all is flushed at once.
            self.partitions += [(SOLO, index) for index in range(self.random.randint(1, 2))]
        self.sent = Sent()
        self.producers = [
            Producer(self.cluster, f"producer-{number}", draws.choice(KINDS), self.sent)
            for number in range(self.random.randint(1, 3))
        ]
        self.readers = [
            Reader(self.cluster, f"reader-{number}", draws.choice(self.partitions), self.sent)
            for number in range(self.random.randint(0, 4))
        ]
        self.delayed = DelayedProducer(self.cluster, "delayed") if has_delays else None
        self.operator = Operator(self.cluster, MOVED) if has_delays else None
        self.deliveries = DeliveryWatch()
        self.replicated = [*self.partitions, *(MOVED if has_delays else ())]
        """All that must be in sync in the end."""
        self.coordinating: list[At] = []
        """Coordinators' partitions, also needed before a machine may lose power; they change to the
        end."""
        self.schedule = Schedule(self.cluster, self.faults, self._is_in_sync)
        self.watchman = Watchman(self.cluster)
        self.groups = self._workload(group_draws) if has_groups else None
        self.transactions = self._transactions() if has_transactions else None
        self.cluster.zookeeper.on_write = self._note_write
        self.violation: BaseException | None = None

    def _workload(self, draws: Random) -> GroupWorkload:
        self.replicated += WORK
        self.coordinating += STATE
        return GroupWorkload(self.cluster, self.watchman, self.sent, draws)

    def _transactions(self) -> TransactionWorkload:
        self.replicated += PLACES
        self.coordinating += TRANSACTION_STATE
        return TransactionWorkload(self.cluster, Random(f"transactions-{self.seed}"))

    def go(self) -> None:
        """Run to the end; raises Violation."""
        token_bytes, randbelow = secrets.token_bytes, secrets.randbelow
        sizes = fetcher.MUCH_BYTES, fetcher.PIECE_BYTES, send_queue.INLINE_REGION_BYTES
        fetcher.MUCH_BYTES = fetcher.PIECE_BYTES = self.piece_bytes
        send_queue.INLINE_REGION_BYTES = self.region_bytes
        secrets.token_bytes = lambda nbytes=32: self.random.randbytes(nbytes or 32)
        secrets.randbelow = lambda exclusive_upper_bound: self.random.randrange(  # noqa: PLW0108
            exclusive_upper_bound
        )
        undo = stand_in(send_queue)
        unwatch = None if self.groups is None else self.groups.deliveries.watch()
        tracebacks = Tracebacks(self._note_violation)
        logging.getLogger().addHandler(tracebacks)
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._note_exception)
        self.loop.after_step = self._look
        REPORTS[:] = [self._note_violation]
        try:
            self.loop.run_until_complete(self._main())
        except Violation as violation:
            raise Violation(f"seed {self.seed}: {violation}") from violation
        finally:
            undo()
            if unwatch is not None:
                unwatch()
            logging.getLogger().removeHandler(tracebacks)
            secrets.token_bytes, secrets.randbelow = token_bytes, randbelow
            fetcher.MUCH_BYTES, fetcher.PIECE_BYTES, send_queue.INLINE_REGION_BYTES = sizes
            asyncio.set_event_loop(None)
            for task in asyncio.all_tasks(self.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                GRAVEYARD.append(task)
            GRAVEYARD.append(self)
            self._free()
        if self.violation is not None:
            raise Violation(f"seed {self.seed}: {self.violation}") from self.violation

    def _free(self) -> None:
        """Free what killed coroutines refer to; they themselves stay in the graveyard."""
        for machine in self.cluster.machines:
            machine.disk.forget()
        for producer in self.all_producers:
            producer.forget()
        SOCKETS.clear()

    def _look(self) -> None:
        """After a step of a host."""
        self.watchman.look()
        host = HOST.get()
        machine = None if host is None else host.machine
        if machine is None:
            return
        if self.groups is not None and self.loop.steps % STEPS_PER_LOOK == 0:
            self.groups.look(machine)
        if self.delayed is not None:
            self._look_at_deliveries(machine)

    def _look_at_deliveries(self, machine: Machine) -> None:
        broker = machine.broker
        if broker is None or broker.services is None:
            return
        now_ms = machine.clock.now_ms()
        for partition in broker.services.replicas:
            if (partition.topic, partition.index) in (LATER, AGAIN):
                self.deliveries.look(machine, partition, now_ms)

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
        if self.groups is not None:
            await self.groups.finalise_features()
        if self.transactions is not None:
            await self.transactions.finalise_features()
        self.cluster.start_all()
        loads, reading = await self._begin_load()
        await self.schedule.run(FAULTY_SECONDS, lambda: self.violation is not None)
        self.schedule.heal()
        self._calm()
        await self._until_settled(loads, reading)
        await asyncio.gather(*loads)
        for task in reading:
            task.cancel()
        audit(self)
        if self.delayed is not None:
            audit_deliveries(self.cluster, self.delayed)
        if self.groups is not None:
            self.groups.audit()
        if self.transactions is not None:
            await self._as_client(self.transactions.audit())
        await self._stop_all()

    async def _begin_load(self) -> tuple[list[asyncio.Task[None]], list[asyncio.Task[None]]]:
        """Create all topics; returns what is to end by itself, and what goes on until cancelled."""
        begin = self._as_client
        for topic in dict(self.partitions):
            count = sum(at[0] == topic for at in self.partitions)
            await begin(self.producers[0].create_topic(topic, count, FACTORS[topic]))
        loads = [begin(producer.run(self.partitions)) for producer in self.producers]
        if self.delayed is not None:
            for topic, config in CONFIGS.items():
                await begin(self.delayed.create_topic(topic, 1, FACTORS[LEDGER], config))
            loads.append(begin(self.delayed.run()))
        if self.operator is not None:
            loads.append(begin(self.operator.run()))
        reading = [begin(reader.run()) for reader in self.readers]
        if self.groups is not None:
            await begin(self.groups.prepare())
            loads.append(begin(self.groups.feed.run(WORK)))
            reading += self.groups.begin(begin)
        if self.transactions is not None:
            await begin(self.transactions.prepare())
            loads += self.transactions.begin(begin)
        return loads, reading

    def _as_client(self, work: Any) -> asyncio.Task[None]:
        """Run a coroutine on the host of the clients."""
        context = contextvars.copy_context()
        context.run(HOST.set, self.clients)
        task: asyncio.Task[None] = self.loop.create_task(work, context=context)
        return task

    def _calm(self) -> None:
        """Let clients finish what they do, however long that takes."""
        for client in (
            *self.producers,
            *self.readers,
            *filter(None, [self.delayed, self.operator]),
        ):
            client.is_done = True
        if self.groups is not None:
            self.groups.calm()
        if self.transactions is not None:
            self.transactions.calm()

    @property
    def all_producers(self) -> list[Producer]:
        """Return the producers of the partitions, and the one that groups read."""
        return [*self.producers, *(() if self.groups is None else (self.groups.feed,))]

    @property
    def audited(self) -> list[At]:
        """Return the partitions that producers write to."""
        return [*self.partitions, *(() if self.groups is None else WORK)]

    def factor(self, at: At) -> int:
        """Return the replication factor of a partition."""
        return FACTORS.get(at[0], FACTORS[LEDGER])

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
        leaders = [one for _, one in self.cluster.partitions() if one.is_leader]
        wanted = [*self.replicated, *self.coordinating]
        leaders = [one for one in leaders if (one.topic, one.index) in wanted]
        return len(leaders) == len(wanted) and all(
            len(one.in_sync_replicas) == self.factor((one.topic, one.index)) for one in leaders
        )

    async def _until_settled(
        self, loads: list[asyncio.Task[None]], reading: list[asyncio.Task[None]]
    ) -> None:
        """After healing all must be in sync again, and all be read, within a bounded time.

        Behind by all that was ever sent, a reader or a replica needs as long as that takes to come.
        """
        carrying = self.cluster.network.carrying_seconds(self.sent.size_in_bytes)
        limit = HEALING_SECONDS + carrying
        end = self.loop.now + limit
        while True:
            await asyncio.sleep(0.5)
            if self.violation is not None:
                raise Violation(str(self.violation))
            for machine in self.cluster.machines:
                if not machine.is_up:
                    machine.start()
            for task in (*loads, *reading):
                if task.done():
                    task.result()
            problem = self._unsettled(all(task.done() for task in loads))
            if not problem:
                return
            if self.loop.now > end:
                raise Violation(f"not settled after {limit:.0f} s: {problem}")

    def _unsettled(self, is_load_over: bool) -> str:
        stopping = [machine.name for machine in self.cluster.machines if machine.is_stopping]
        if stopping:  # what a fault has begun: each is started again once it has ended
            return f"{stopping[0]} is still stopping"
        for at in self.replicated:
            replicas = [
                partition
                for _, partition in self.cluster.partitions()
                if (partition.topic, partition.index) == at
            ]
            problem = self._ailment(at, replicas)
            if problem:
                return f"{at[0]}-{at[1]} {problem}"
            end = replicas[0].log.log_end_offset
            late = [one for one in self.readers if one.at == at and one.position < end]
            if late:
                one = late[0]
                return (
                    f"{one.name} has read {at[0]}-{at[1]} to {one.position}, not {end}; "
                    f"waits for {one.waits_for()}"
                )
        return self._unfinished(is_load_over)

    def _unfinished(self, is_load_over: bool) -> str:
        """Describe the clients' unfinished work."""
        if self.delayed is not None and (problem := unfinished(self.cluster, self.delayed)):
            return problem
        if not is_load_over:
            late = filter(None, (one.unfinished() for one in self.all_producers))
            return "; ".join(late) or "transactions are under way"
        if self.transactions is not None and (problem := self.transactions.unsettled()):
            return problem
        return "" if self.groups is None else self.groups.unsettled()

    def _ailment(self, at: At, replicas: list[Partition]) -> str:
        factor = self.factor(at)
        leaders = [one for one in replicas if one.is_leader]
        if len(replicas) != factor or len(leaders) != 1:
            return f"has {len(replicas)} replicas, {len(leaders)} leaders"
        if len(leaders[0].in_sync_replicas) != factor:
            return f"has only {leaders[0].in_sync_replicas} in sync"
        ends = {(one.log.high_watermark, one.log.log_end_offset) for one in replicas}
        if len(ends) != 1 or any(mark != end for mark, end in ends):
            return f"has ends {ends}"
        return ""
