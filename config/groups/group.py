"""The group keys, and a group's configuration as typed values."""

from __future__ import annotations

from dataclasses import dataclass

from config.groups.offset_reset import OffsetReset
from config.key import LOW, boolean, integer, long, string, strings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Configuration of a group; `GroupConfig()` is Apache Kafka's default group."""

    consumer_assignment_interval_ms: int = integer(
        1000, low=0, acts=True, broker_keys=("group.consumer.assignment.interval.ms",)
    )
    """Wait between two assignments of the consumer group."""

    consumer_assignor_offload_enable: bool = boolean(
        True, internal=True, broker_keys=("group.consumer.assignor.offload.enable",)
    )
    """Compute assignments on a separate thread in Apache Kafka."""

    consumer_heartbeat_interval_ms: int = integer(
        5000, low=1, acts=True, broker_keys=("group.consumer.heartbeat.interval.ms",)
    )
    """Interval between heartbeats of the consumer group's members."""

    consumer_session_timeout_ms: int = integer(
        45_000, low=1, acts=True, broker_keys=("group.consumer.session.timeout.ms",)
    )
    """Silence after which a member of the consumer group is removed."""

    errors_deadletterqueue_copy_record_enable: bool = boolean(False)
    """Copy key and value of the record into dead letters of the share group."""

    errors_deadletterqueue_topic_name: str = string("")
    """Topic for dead letters of the share group."""

    share_assignment_interval_ms: int = integer(
        1000, low=0, acts=True, broker_keys=("group.share.assignment.interval.ms",)
    )
    """Wait between two assignments of the share group."""

    share_assignor_offload_enable: bool = boolean(
        True, internal=True, broker_keys=("group.share.assignor.offload.enable",)
    )
    """Compute assignments on a separate thread in Apache Kafka."""

    share_auto_offset_reset: str = string("latest", rule=OffsetReset(), acts=True)
    """Start offset of the share group in a partition that it has not read yet.

    `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration before now
    (`by_duration:PT1H`)."""

    share_delivery_count_limit: int = integer(
        5, low=2, acts=True, broker_keys=("group.share.delivery.count.limit",)
    )
    """Deliveries after which a record counts as undeliverable."""

    share_heartbeat_interval_ms: int = integer(
        5000, low=1, acts=True, broker_keys=("group.share.heartbeat.interval.ms",)
    )
    """Interval between heartbeats of the share group's members."""

    share_isolation_level: str = string(
        "read_uncommitted", choices=("read_committed", "read_uncommitted"), acts=True
    )
    """Isolation level of the share group: with `read_uncommitted`, records of open and aborted
    transactions are delivered."""

    share_partition_max_record_locks: int = integer(
        2000, low=100, acts=True, broker_keys=("group.share.partition.max.record.locks",)
    )
    """Records of one partition that may be in delivery at once."""

    share_record_lock_duration_ms: int = integer(
        30_000, low=1000, acts=True, broker_keys=("group.share.record.lock.duration.ms",)
    )
    """Time for which an acquired record is locked for its member."""

    share_renew_acknowledge_enable: bool = boolean(True, acts=True)
    """Allow members of the share group to renew the lock of a record."""

    share_session_timeout_ms: int = integer(
        45_000, low=1, acts=True, broker_keys=("group.share.session.timeout.ms",)
    )
    """Silence after which a member of the share group is removed."""

    streams_acceptable_recovery_lag: int = long(
        10_000,
        low=0,
        internal=True,
        acts=True,
        broker_keys=("group.streams.acceptable.recovery.lag",),
    )
    """Lag up to which a task of the streams group counts as restored; sent to its members."""

    streams_assignment_interval_ms: int = integer(
        1000, low=0, acts=True, broker_keys=("group.streams.assignment.interval.ms",)
    )
    """Wait between two assignments of the streams group."""

    streams_assignor_name: str | None = string(None, broker_keys=("group.streams.assignors",))
    """Assignor of the streams group; the broker's default without one."""

    streams_assignor_offload_enable: bool = boolean(
        True, internal=True, broker_keys=("group.streams.assignor.offload.enable",)
    )
    """Compute assignments on a separate thread in Apache Kafka."""

    streams_heartbeat_interval_ms: int = integer(
        5000, low=1, acts=True, broker_keys=("group.streams.heartbeat.interval.ms",)
    )
    """Interval between heartbeats of the streams group's members."""

    streams_initial_rebalance_delay_ms: int = integer(
        3000, low=0, acts=True, broker_keys=("group.streams.initial.rebalance.delay.ms",)
    )
    """Time that an empty streams group waits for more members."""

    streams_num_standby_replicas: int = integer(
        0, low=0, acts=True, broker_keys=("group.streams.num.standby.replicas",)
    )
    """Standby replicas of each task of the streams group."""

    streams_num_warmup_replicas: int = integer(
        2, low=0, internal=True, broker_keys=("group.streams.num.warmup.replicas",)
    )
    """Warm-up replicas of the streams group."""

    streams_rack_aware_assignment_tags: tuple[str, ...] = strings(
        importance=LOW, acts=True, broker_keys=("group.streams.rack.aware.assignment.tags",)
    )
    """Tags that members of the streams group have to have."""

    streams_session_timeout_ms: int = integer(
        45_000, low=1, acts=True, broker_keys=("group.streams.session.timeout.ms",)
    )
    """Silence after which a member of the streams group is removed."""

    streams_task_offset_interval_ms: int = integer(
        60_000,
        low=1,
        internal=True,
        acts=True,
        broker_keys=("group.streams.task.offset.interval.ms",),
    )
    """Interval at which members of the streams group report the offsets of their tasks."""
