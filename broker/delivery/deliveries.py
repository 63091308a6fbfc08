"""The partitions in which this broker delivers: those it leads in which records wait, or may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.delivery.partition_delivery import PartitionDelivery

if TYPE_CHECKING:
    from broker.delivery.dead_letter_relay import DeadLetterPorts
    from broker.partitions.partition import Partition
    from broker.runtime.compute_pool import ComputePool
    from broker.runtime.event_loop import BackgroundLoop


class Deliveries:
    """Begins and ends the work with leadership. `partition_changed` listens for its changes."""

    def __init__(
        self, loop: BackgroundLoop, compute_pool: ComputePool, dead_letters: DeadLetterPorts
    ) -> None:
        self._loop = loop
        self._dead_letters = dead_letters
        self._compute_pool = compute_pool
        self._running: dict[Partition, PartitionDelivery] = {}

    def __len__(self) -> int:
        """Records that wait, as far as is known."""
        return sum(map(len, self._running.values()))

    def stop(self) -> None:
        """Deliver nothing more: the broker stops."""
        for delivery in self._running.values():
            delivery.stop()
        self._running.clear()

    def partition_changed(self, partition: Partition, is_leader: bool) -> None:
        """The role of a replica has changed."""
        old = self._running.pop(partition, None)
        if old is not None:
            old.stop()
        if is_leader:
            self.config_changed(partition)

    def config_changed(self, partition: Partition) -> None:
        """Begin if records may wait by now. Those that do are delivered, whatever is configured."""
        may_begin = partition.is_leader and partition not in self._running
        if may_begin and partition.log.prepare_delays():
            delivery = PartitionDelivery(
                partition, self._loop, self._compute_pool, self._dead_letters
            )
            self._running[partition] = delivery
            name = f"deliver {partition.topic}-{partition.index}"
            self._loop.spawn(delivery.run(), name)
