"""The group keys, and a group's configuration as typed values."""

from __future__ import annotations

from dataclasses import dataclass

from config.groups.offset_reset import OffsetReset
from config.key import LOW, boolean, integer, long, string, strings


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """What a group is configured to be; `GroupConfig()` is Apache Kafka's default group."""

    consumer_assignment_interval_ms: int = integer(
        1000, low=0, acts=True, broker_keys=("group.consumer.assignment.interval.ms",)
    )
    """Wait between two assignments of the consumer group."""

    consumer_assignor_offload_enable: bool = boolean(
        True, internal=True, broker_keys=("group.consumer.assignor.offload.enable",)
    )
    """Whether Apache Kafka assigns on a thread of its own."""

    consumer_heartbeat_interval_ms: int = integer(
        5000, low=1, acts=True, broker_keys=("group.consumer.heartbeat.interval.ms",)
    )
    """How often members of the consumer group send heartbeats."""

    consumer_session_timeout_ms: int = integer(
        45_000, low=1, acts=True, broker_keys=("group.consumer.session.timeout.ms",)
    )
    """Silence after which a member of the consumer group is removed."""

    errors_deadletterqueue_copy_record_enable: bool = boolean(False)
    """Whether dead letters of the share group have the key and the value of their record."""

    errors_deadletterqueue_topic_name: str = string("")
    """Topic for dead letters of the share group."""

    share_assignment_interval_ms: int = integer(
        1000, low=0, acts=True, broker_keys=("group.share.assignment.interval.ms",)
    )
    """Wait between two assignments of the share group."""

    share_assignor_offload_enable: bool = boolean(
        True, internal=True, broker_keys=("group.share.assignor.offload.enable",)
    )
    """Whether Apache Kafka assigns on a thread of its own."""

    share_auto_offset_reset: str = string("latest", rule=OffsetReset(), acts=True)
    """Where the share group begins in a partition that it has not read yet.

    `earliest`, `latest`, or `by_duration:` and how long ago, in ISO 8601 (`by_duration:PT1H`).
    """

    share_delivery_count_limit: int = integer(
        5, low=2, acts=True, broker_keys=("group.share.delivery.count.limit",)
    )
    """Deliveries after which a record counts as undeliverable."""

    share_heartbeat_interval_ms: int = integer(
        5000, low=1, acts=True, broker_keys=("group.share.heartbeat.interval.ms",)
    )
    """How often members of the share group send heartbeats."""

    share_isolation_level: str = string(
        "read_uncommitted", choices=("read_committed", "read_uncommitted"), acts=True
    )
    """Whether the share group is given records of transactions that are open or aborted."""

    share_partition_max_record_locks: int = integer(
        2000, low=100, acts=True, broker_keys=("group.share.partition.max.record.locks",)
    )
    """Records of one partition that may be in delivery at once."""

    share_record_lock_duration_ms: int = integer(
        30_000, low=1000, acts=True, broker_keys=("group.share.record.lock.duration.ms",)
    )
    """How long a record is in delivery before others may have it."""

    share_renew_acknowledge_enable: bool = boolean(True, acts=True)
    """Whether members of the share group may prolong the time they have for a record."""

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
    """Lag up to which a task of the streams group counts as restored, as members are told."""

    streams_assignment_interval_ms: int = integer(
        1000, low=0, acts=True, broker_keys=("group.streams.assignment.interval.ms",)
    )
    """Wait between two assignments of the streams group."""

    streams_assignor_name: str | None = string(None, broker_keys=("group.streams.assignors",))
    """Assignor of the streams group; the broker's default without one."""

    streams_assignor_offload_enable: bool = boolean(
        True, internal=True, broker_keys=("group.streams.assignor.offload.enable",)
    )
    """Whether Apache Kafka assigns on a thread of its own."""

    streams_heartbeat_interval_ms: int = integer(
        5000, low=1, acts=True, broker_keys=("group.streams.heartbeat.interval.ms",)
    )
    """How often members of the streams group send heartbeats."""

    streams_initial_rebalance_delay_ms: int = integer(
        3000, low=0, acts=True, broker_keys=("group.streams.initial.rebalance.delay.ms",)
    )
    """How long the streams group, when empty, waits for more members."""

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
    """How often members of the streams group report how far their tasks are."""
