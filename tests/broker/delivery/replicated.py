"""Three replicas of a partition with delays, and their leader, in virtual time.

Each has a disk in memory and a clock that may be wrong. What followers get, who leads and who is
killed is said by the test; delivery is the broker's own.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from broker.delivery.dead_letter_relay import DeadLetterPorts
from broker.delivery.deliveries import Deliveries
from broker.delivery.delivery_parts import DeliveryLimits, DeliveryParts
from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.topic import TopicConfig
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.records.batch import parse_header
from protocol.records.recompression import recompress
from protocol.records.validation import AsideError
from storage.append.append_source import FROM_CLIENT, FROM_COORDINATOR, FROM_RECOMPRESSION
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.log.log_loader import LoadHints, create_log, load_log
from storage.log.log_settings import LogPlace, LogSettings
from tests.broker.replica_fetchers.harness import surroundings
from tests.simulation.machine.disk import SimulatedDisk
from tests.storage.produced import NOW_MS, TOPIC_ID
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.loop_watch import as_another_process

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from random import Random

    from broker.delivery.dead_letter_relay import Sender
    from protocol.errors import ErrorCode
    from storage.append.append_info import AppendInfo
    from storage.log.log import Log

DELAYING = TopicConfig(
    segment_bytes=3000,
    segment_index_bytes=1200,  # a simulated disk writes all of a new index
    index_interval_bytes=200,
    delivery_delay_enable=True,
)


LIMITS = DeliveryLimits(batch_bytes=1 << 16, batch_records=5, cancelled_records=3, memory_records=4)
"""Limits small enough for the scenarios to reach each of them."""


class SkewedClock:
    """The time of the loop, and an error that a test may change."""

    def __init__(self) -> None:
        self.skew_ms = 0

    def now_ms(self) -> int:
        return NOW_MS + self.monotonic_ms() + self.skew_ms

    def monotonic_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)


class AtOnce:
    """Compute pool whose results are there at once."""

    def run(self, work: Callable[[], Any]) -> Deferred[Any]:
        outcome: Deferred[Any] = Deferred()
        outcome.complete(work())
        return outcome


class NoDeadLetters:
    """Dead letter queue of a test that expects no dead letter."""

    async def send(self, topic: str, index: int, batch: bytearray) -> ErrorCode:
        raise AssertionError((topic, index, batch))


class Replica:
    """A broker with its log."""

    def __init__(self, number: int, config: TopicConfig) -> None:
        self.number = number
        self.config = config
        self.clock = SkewedClock()
        self.disk = SimulatedDisk(lambda: NOW_MS)
        self.log: Log = create_log(self._place(), config, LogSettings(), NOW_MS)
        self.dead_letters: Sender = NoDeadLetters()
        self.failures: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def begin_life(self) -> None:
        """Timers and deliveries as they are at a broker's start."""
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(self.clock, timers, self._spawn, one_step_at_a_time, self._note)
        ports = DeadLetterPorts(self.dead_letters, self._obtain_producer_id)
        parts = DeliveryParts(loop, AtOnce(), Executor(), ports, LIMITS)  # type: ignore[arg-type]
        self.deliveries = Deliveries(parts)
        services = surroundings(self.number, timers, self.clock)
        self.partition = Partition(self.log, services)

    def lead(self, epoch: int, *others: int) -> None:
        """Become the only replica in sync, or one beside others, which do nothing by themselves."""
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=self.number,
            leader_epoch=epoch,
            isr=[self.number, *others],
            partition_epoch=epoch,
            replicas=[self.number, *others],
        )
        assert self.partition.assume(state)
        self.deliveries.partition_changed(self.partition, True)

    async def _obtain_producer_id(self) -> int:
        raise AssertionError("nothing is dead here")

    def resign(self) -> None:
        """Lose leadership to another broker."""
        self.deliveries.partition_changed(self.partition, False)

    def die(
        self, recovery_point: int, random: Random | None = None, log_start_offset: int = 0
    ) -> None:
        """End the process, or cut the power if chance is given, and load the log again.

        The offsets are those of the last checkpoints.
        """
        for task in self._tasks:
            task.cancel()
        if random is None:
            self.disk.end_life()
        else:
            self.disk.lose_power(random)
        hints = LoadHints(False, recovery_point, log_start_offset)
        with as_another_process():
            self.log, _ = load_log(self._place(), self.config, LogSettings(), hints)
        self.begin_life()

    def append(self, batch: memoryview) -> AppendInfo:
        """Append a client's batch as the leader does."""
        now_ms = self.clock.now_ms()
        try:
            return self.partition.append_records(batch, -1, FROM_CLIENT, now_ms)
        except AsideError:
            ready = memoryview(recompress(batch, self.log.produce_rules, now_ms))
            return self.partition.append_records(ready, -1, FROM_RECOMPRESSION, now_ms)

    def append_marker(self, batch: memoryview) -> AppendInfo:
        """Append the end of a transaction as the leader does."""
        return self.partition.append_records(batch, -1, FROM_COORDINATOR, self.clock.now_ms())

    def fetch_from(self, leader: Replica, most_batches: int) -> None:
        """Copy some of what the leader has more."""
        batches = leader.log.read_batches(self.log.log_end_offset, leader.log.log_end_offset)
        for _, batch in zip(range(most_batches), batches, strict=False):
            self.log.append_as_follower(bytes(batch), leader.clock.now_ms())
        self.log.advance_high_watermark(self.log.log_end_offset)

    def truncate_where_it_differs_from(self, leader: Replica) -> None:
        """Truncate first, as a follower does: a power failure may bring back truncated records."""
        theirs = {
            header.base_offset: header.crc for header in map(parse_header, _batches(leader.log))
        }
        for header in map(parse_header, list(_batches(self.log))):
            if header.base_offset < leader.log.log_start_offset:
                continue
            if theirs.get(header.base_offset) != header.crc:
                self.log.truncate_to(header.base_offset)
                return

    def _place(self) -> LogPlace:
        return LogPlace(LogDirectory("/data", Disk(self.disk)), "letters", 0, TOPIC_ID)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> object:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    def _note(self, name: str, error: BaseException, kind: str = "") -> None:
        error.add_note(f"{name} {kind}")
        self.failures.append(error)


def _batches(log: Log) -> Iterator[memoryview]:
    return log.read_batches(log.log_start_offset, log.log_end_offset)
