"""Log directories, segments, flushing and retention."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import (
    CLUSTER_WIDE,
    HIGH,
    HOUR_MS,
    LONG_MAX,
    LOW,
    PER_BROKER,
    boolean,
    integer,
    long,
    optional_strings,
    string,
    string_set,
    strings,
)
from config.rules import NotEmpty


@dataclass(frozen=True, init=False, repr=False, eq=False)
class LogKeys:
    """Log directories, segments, flushing and retention."""

    cordoned_log_dirs: tuple[str, ...] = strings(scope=PER_BROKER)
    """Log directories that get no new partitions."""

    log_cleanup_policy: frozenset[str] = string_set(
        "delete", choices=("compact", "delete"), scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `cleanup.policy`."""

    log_dir: str = string(
        "/tmp/kafka-logs",  # noqa: S108  # Apache Kafka's default
        rule=NotEmpty(),
        importance=HIGH,
        acts=True,
    )
    """Log directory, when `log.dirs` is not set."""

    log_dir_failure_timeout_ms: int = long(30_000, low=1, importance=LOW)
    """Time after which a broker that cannot report a failed log directory stops."""

    log_dirs: tuple[str, ...] = optional_strings(importance=HIGH, acts=True)
    """Directories logs are kept in, one per disk."""

    log_flush_interval_messages: int = long(
        LONG_MAX, low=1, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `flush.messages`."""

    log_flush_interval_ms: int | None = long(
        None, low=0, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `flush.ms`; unset takes the scheduler's interval."""

    log_flush_offset_checkpoint_interval_ms: int = integer(
        60_000, low=0, importance=HIGH, acts=True
    )
    """Interval between checkpoints of the offsets up to which logs are flushed."""

    log_flush_scheduler_interval_ms: int = long(LONG_MAX, low=0, importance=HIGH, acts=True)
    """Interval between checks for logs that are due for a flush."""

    log_flush_start_offset_checkpoint_interval_ms: int = integer(
        60_000, low=0, importance=HIGH, acts=True
    )
    """Interval between checkpoints of log start offsets."""

    log_index_interval_bytes: int = integer(4096, low=0, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `index.interval.bytes`."""

    log_index_size_max_bytes: int = integer(10 << 20, low=4, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `segment.index.bytes`."""

    log_initial_task_delay_ms: int = long(30_000, low=0, importance=LOW, internal=True, acts=True)
    """Wait after the start before logs are tended to."""

    log_local_retention_bytes: int = long(-2, low=-2, scope=CLUSTER_WIDE)
    """Default of the topic key `local.retention.bytes`."""

    log_local_retention_ms: int = long(-2, low=-2, scope=CLUSTER_WIDE)
    """Default of the topic key `local.retention.ms`."""

    log_message_downconversion_enable: bool = boolean(True, importance=LOW, scope=CLUSTER_WIDE)
    """Default of the topic key `message.downconversion.enable`."""

    log_message_format_version: str = string("3.0-IV1")
    """Record format of Apache Kafka before 3.0; accepted and without effect."""

    log_message_timestamp_after_max_ms: int = long(HOUR_MS, low=0, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `message.timestamp.after.max.ms`."""

    log_message_timestamp_before_max_ms: int = long(LONG_MAX, low=0, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `message.timestamp.before.max.ms`."""

    log_message_timestamp_difference_max_ms: int = long(
        LONG_MAX, low=0, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `message.timestamp.difference.max.ms`."""

    log_message_timestamp_type: str = string(
        "CreateTime", choices=("CreateTime", "LogAppendTime"), scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `message.timestamp.type`."""

    log_preallocate: bool = boolean(False, scope=CLUSTER_WIDE)
    """Default of the topic key `preallocate`."""

    log_retention_bytes: int = long(-1, importance=HIGH, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `retention.bytes`."""

    log_retention_check_interval_ms: int = long(300_000, low=1, acts=True)
    """Interval between checks for segments that retention deletes."""

    log_retention_hours: int = integer(168, importance=HIGH, acts=True)
    """Default of the topic key `retention.ms`, in hours."""

    log_retention_minutes: int | None = integer(None, importance=HIGH, acts=True)
    """Default of the topic key `retention.ms`, in minutes; wins over hours."""

    log_retention_ms: int | None = long(None, importance=HIGH, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `retention.ms`; wins over minutes and hours."""

    log_roll_hours: int = integer(168, low=1, importance=HIGH, acts=True)
    """Default of the topic key `segment.ms`, in hours."""

    log_roll_jitter_hours: int = integer(0, low=0, importance=HIGH, acts=True)
    """Default of the topic key `segment.jitter.ms`, in hours."""

    log_roll_jitter_ms: int | None = long(
        None, low=0, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `segment.jitter.ms`; wins over hours."""

    log_roll_ms: int | None = long(None, low=1, importance=HIGH, scope=CLUSTER_WIDE, acts=True)
    """Default of the topic key `segment.ms`; wins over hours."""

    log_segment_bytes: int = integer(
        1 << 30, low=14, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `segment.bytes`."""

    log_segment_delete_delay_ms: int = long(
        60_000, low=0, importance=HIGH, scope=CLUSTER_WIDE, acts=True
    )
    """Default of the topic key `file.delete.delay.ms`."""

    num_recovery_threads_per_data_dir: int = integer(1, low=1, importance=HIGH, scope=CLUSTER_WIDE)
    """Threads per log directory that load logs at start and flush them at stop."""

    num_replica_alter_log_dirs_threads: int | None = integer(None, importance=HIGH)
    """Threads that move replicas between log directories."""
