"""The partitions in which this broker delivers: those it leads in which records wait, or may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.delivery.partition_delivery import PartitionDelivery

if TYPE_CHECKING:
    from broker.delivery.delivery_parts import DeliveryParts
    from broker.partitions.partition import Partition


class Deliveries:
    """Begins and ends the work with leadership. `partition_changed` listens for its changes."""

    def __init__(self, parts: DeliveryParts) -> None:
        self._parts = parts
        self._running: dict[Partition, PartitionDelivery] = {}

    def __len__(self) -> int:
        """Records that wait, as far as is known; for any thread."""
        return sum(map(len, list(self._running.values())))

    @property
    def dead_letters(self) -> int:
        """Dead letters that have not arrived, as far as is known; for any thread."""
        return sum(delivery.dead_letters for delivery in list(self._running.values()))

    def of(self, partition: Partition) -> PartitionDelivery | None:
        """The work on a partition; None where nothing can wait, or another broker leads."""
        return self._running.get(partition)

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
        """Begin if records may wait by now. Waiting ones are delivered in any case."""
        may_begin = partition.is_leader and partition not in self._running
        if may_begin and partition.log.prepare_delays():
            delivery = PartitionDelivery(partition, self._parts)
            self._running[partition] = delivery
            name = f"deliver {partition.topic}-{partition.index}"
            self._parts.loop.spawn(delivery.run(), name)
