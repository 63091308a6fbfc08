"""The settings of share groups: a group's own, or else the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator.share_partitions.settings import ShareGroupSettings, offset_reset

if TYPE_CHECKING:
    from broker.metadata.group_configs import GroupConfigs
    from config.broker import BrokerConfig

READ_COMMITTED: Final = "read_committed"


class ShareGroupConfigs:
    """Asked before each step, as a group's settings may change."""

    def __init__(self, config: BrokerConfig, groups: GroupConfigs) -> None:
        self._groups = groups
        self._of_broker = ShareGroupSettings(
            delivery_count_limit=config.group_share_delivery_count_limit,
            max_record_locks=config.group_share_partition_max_record_locks,
            record_lock_duration_ms=config.group_share_record_lock_duration_ms,
        )

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        """Current settings of a group."""
        default = self._of_broker
        if not self._groups.overrides(group_id):
            return default
        value = self._groups.value
        isolation = value(group_id, "share.isolation.level", "")
        return ShareGroupSettings(
            value(group_id, "share.delivery.count.limit", default.delivery_count_limit),
            value(group_id, "share.partition.max.record.locks", default.max_record_locks),
            value(group_id, "share.record.lock.duration.ms", default.record_lock_duration_ms),
            value(group_id, "share.renew.acknowledge.enable", default.is_renewal_enabled),
            isolation.lower() == READ_COMMITTED,
            offset_reset(value(group_id, "share.auto.offset.reset", "latest")),
        )
