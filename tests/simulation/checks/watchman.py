"""Invariants checked after every step of a broker, and after every write to ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.metadata_store.store import Create, SetData
from controller.znodes import CONTROLLER_EPOCH, decode_epoch, decode_state
from tests.simulation.machine.hosts import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.partitions.partition import Partition
    from controller.metadata_store.store import Operation
    from tests.simulation.cluster import Machine, SimulatedCluster


ID_TAKEN = "is registered by another broker"
"""Exit message of a broker whose id is in use; here each has its own."""


class Violation(AssertionError):
    """A promise was broken."""


class Watchman:
    """Looks at the brokers from outside; raises Violation."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._marks: dict[tuple[str, int, str, int], tuple[int, int]] = {}
        """High watermark, by a broker's life and partition, and the leader epoch it is of."""
        self._appenders: dict[tuple[str, int, int], tuple[str, int]] = {}
        """The broker, and its incarnation, that appends in a partition and leader epoch."""
        self._last_leaders: dict[tuple[str, int], tuple[int, tuple[str, int], float]] = {}
        """The newest leader epoch of each partition, who leads in it, and since when."""
        self._epochs: dict[tuple[object, ...], int] = {}
        """The last of what may only rise, by a broker's life and a name."""
        self._seen: dict[Partition, tuple[object, ...]] = {}
        """As last looked at: most steps change nothing."""

    def look(self) -> None:
        """After a step of the running host."""
        host = HOST.get()
        machine = None if host is None else host.machine
        if machine is None or machine.broker is None:
            return
        if (failure := machine.broker.failure) is not None and ID_TAKEN in failure:
            raise Violation(f"{machine.name} takes itself for another: {failure}")
        broker = machine.broker.services
        if broker is None:
            return
        self._rises(machine, broker.metadata.controller_epoch, "controller epoch of metadata")
        for partition in broker.replicas:
            log = partition.log
            state = (
                log.high_watermark,
                log.log_end_offset,
                partition.leader_epoch,
                partition.is_leader,
                partition.in_sync_replicas,
            )
            if self._seen.get(partition) != state:
                self._seen[partition] = state
                self._check(machine, partition)

    def leads_since(self, at: tuple[str, int], broker: tuple[int, int], moment: float) -> bool:
        """Return whether a broker has led since a moment, in one epoch and incarnation."""
        if at not in self._last_leaders:
            return False
        _, leader, since = self._last_leaders[at]
        return leader == (self._cluster.machines[broker[0]].name, broker[1]) and since <= moment

    def judge_write(self, writer: str, operations: Sequence[Operation]) -> str:
        """After a write to ZooKeeper that succeeded: only the controller of now decides.

        Returns what is wrong with it: who writes must not see that it is looked at.
        """
        tree = self._cluster.zookeeper.ensemble.tree
        for operation in operations:
            if not isinstance(operation, Create | SetData) or operation.data is None:
                continue
            if operation.path.startswith("/brokers/topics/") and operation.path.endswith("/state"):
                epoch = decode_state(operation.path, operation.data).controller_epoch
                current = decode_epoch(tree.get(CONTROLLER_EPOCH).data)
                if epoch != current:
                    return (
                        f"{writer} writes {operation.path} as controller of epoch {epoch}, "
                        f"when the epoch is {current}"
                    )
        return ""

    def _rises(self, machine: Machine, value: int, *name: object) -> None:
        key = (machine.name, machine.lives, *name)
        before = self._epochs.get(key, value)
        if value < before:
            shown = " ".join(map(str, name))
            raise Violation(f"{machine.name}: {shown} fell from {before} to {value}")
        self._epochs[key] = value

    def _check(self, machine: Machine, partition: Partition) -> None:
        log = partition.log
        at = partition.topic, partition.index
        where = f"{at[0]}-{at[1]} on {machine.name}"
        if log.high_watermark > log.log_end_offset:
            raise Violation(f"{where}: high watermark {log.high_watermark} > {log.log_end_offset}")
        self._rises(machine, partition.leader_epoch, "leader epoch", *at)
        if partition.is_leader:
            self._check_leader(machine, partition, where)
        if not set(partition.in_sync_replicas) <= set(partition.replicas):
            raise Violation(f"{where}: in sync {partition.in_sync_replicas}, not replicas")

    def _check_leader(self, machine: Machine, partition: Partition, where: str) -> None:
        key = (machine.name, machine.lives, partition.topic, partition.index)
        self._cluster.promptness.note(machine, partition)
        mark, leader_epoch = partition.log.high_watermark, partition.leader_epoch
        epoch, before = self._marks.get(key, (-1, 0))
        if epoch == leader_epoch and mark < before:
            raise Violation(f"{where}: high watermark fell from {before} to {mark}")
        self._marks[key] = leader_epoch, mark
        one = machine.name, machine.lives
        at = partition.topic, partition.index
        other = self._appenders.setdefault((*at, leader_epoch), one)
        if leader_epoch > self._last_leaders.get(at, (-1, one, 0.0))[0]:
            self._last_leaders[at] = leader_epoch, one, self._cluster.loop.now
        # Who alone has a partition leads it again, in the same epoch if nobody saw it die.
        if other != one and (len(partition.replicas) > 1 or other[0] != one[0]):
            raise Violation(
                f"{where}: {other[0]}, in its life {other[1]}, leads in epoch {leader_epoch}; "
                f"this is life {machine.lives}"
            )
        in_sync = partition.in_sync_replicas
        if in_sync and partition.leader_id not in in_sync:
            raise Violation(f"{where}: leader is not in sync {in_sync}")
