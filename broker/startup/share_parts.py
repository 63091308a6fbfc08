"""The parts that serve members of share groups in the partitions that this broker leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.share_partitions.first_offset import FirstOffsets
from broker.share_partitions.group_settings import ShareGroupConfigs
from broker.share_partitions.led_partition import ShareParts
from broker.share_partitions.share_partitions import SharePartitions

if TYPE_CHECKING:
    from broker.coordinators.share_state.store import ShareStateStore
    from broker.partitions.replicas import Replicas
    from broker.startup.cluster_parts import Foundation


def share_partitions(
    base: Foundation, replicas: Replicas, store: ShareStateStore
) -> SharePartitions:
    """Share-partitions of this broker, none yet."""
    config, machine = base.config, base.machine
    first_offsets = FirstOffsets(
        machine.background, machine.supervision.spawn, base.storage.compute_pool
    )
    parts = ShareParts(
        machine.clock,
        machine.timers,
        store,
        first_offsets,
        ShareGroupConfigs(config, base.settings.groups),
    )
    return SharePartitions(parts, replicas, config.group_share_max_share_sessions)
