"""Surroundings of partitions: a manual clock, and a controller that records proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.partitions.partition_services import PartitionServices
from broker.replication.replica_machine import ReplicaSettings
from broker.runtime.clock import SystemClock
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.partitions.durability import Durability
    from broker.partitions.partition import Partition
    from broker.replication.effects import Proposal

MAX_LAG_MS = 30_000


class ManualClock:
    """Clock that stands still until it is set."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


class NotedProposals:
    """Keeps what leaders propose; answers nothing."""

    def __init__(self) -> None:
        self.noted: list[tuple[Partition, Proposal]] = []

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        self.noted.append((partition, proposal))

    def take(self) -> list[tuple[int, ...]]:
        """The sets proposed since the last call."""
        taken, self.noted = self.noted, []
        return [proposal.in_sync for _, proposal in taken]


class ImmediateFlushes:
    """Waits for the disk at once."""

    def add(self, log: Durability) -> None:
        with disk_in_place():
            log.start()()
        log.ended(None)


def surroundings(
    local_id: int,
    timers: Any,
    clock: Any = None,
    changes: Any = None,
    alive: Collection[int] = (),
) -> PartitionServices:
    """For a partition of broker `local_id`; `alive` are the other brokers that live."""
    return PartitionServices(
        replica=ReplicaSettings(local_id, MAX_LAG_MS, alive.__contains__),
        timers=timers,
        clock=clock or SystemClock(),
        changes=changes or NotedProposals(),
        flushes=ImmediateFlushes(),
    )
