"""Services of a broker needed for delivery, the same in all partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from broker.delivery.dead_letter_relay import DeadLetterPorts
    from broker.runtime.compute_pool import ComputePool
    from broker.runtime.event_loop import BackgroundLoop
    from config.broker import BrokerConfig


class DeliveryLimits(NamedTuple):
    """Amounts that one partition processes and keeps at a time: the keys `delivery.*`."""

    batch_bytes: int
    batch_records: int
    cancelled_records: int
    memory_records: int


class DeliveryParts(NamedTuple):
    """The parts."""

    loop: BackgroundLoop
    compute_pool: ComputePool
    disk_threads: Executor
    dead_letters: DeadLetterPorts
    limits: DeliveryLimits


def delivery_limits(config: BrokerConfig) -> DeliveryLimits:
    """Limits from the property file."""
    return DeliveryLimits(
        config.delivery_batch_max_bytes,
        config.delivery_batch_max_records,
        config.delivery_cancelled_max_records,
        config.delivery_memory_max_records,
    )
