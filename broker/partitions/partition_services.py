"""Services shared by all partitions of one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from broker.partitions.durability import Flushes
    from broker.partitions.partition import Partition
    from broker.partitions.throttle import Throttle
    from broker.replication.effects import Proposal
    from broker.replication.replica_machine import ReplicaSettings
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers


class InSyncChanges(Protocol):
    """Carries proposals to the controller, and its answers to `Partition.decided`."""

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask the controller to store a set; `partition.decided` is called with the answer."""


class PartitionServices(NamedTuple):
    """Time, the way to the controller and to the disk, and what bounds replication."""

    replica: ReplicaSettings
    timers: Timers
    clock: Clock
    changes: InSyncChanges
    flushes: Flushes
    """Have logs on the disk whose appends wait for that."""
    throttle: Throttle | None = None
    """Throttles followers that are far behind, if topics and this broker are configured so."""
