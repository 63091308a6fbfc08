"""Where logs live, how segments roll, how they are flushed and deleted."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import (
    CLUSTER_WIDE,
    HIGH,
    LONG_MAX,
    LOW,
    PER_BROKER,
    boolean,
    integer,
    long,
    string,
    string_set,
    strings,
)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class LogKeys:
    """Where logs live, how segments roll, how they are flushed and deleted."""

    cordoned_log_dirs: tuple[str, ...] = strings(scope=PER_BROKER)

    log_cleanup_policy: frozenset[str] = string_set(
        "delete", choices=("compact", "delete"), scope=CLUSTER_WIDE
    )

    log_dir: str = string("/tmp/kafka-logs", importance=HIGH)  # noqa: S108  # Apache Kafka's default

    log_dir_failure_timeout_ms: int = long(30_000, low=1, importance=LOW)

    log_dirs: tuple[str, ...] = strings(importance=HIGH)

    log_flush_interval_messages: int = long(LONG_MAX, low=1, importance=HIGH, scope=CLUSTER_WIDE)

    log_flush_interval_ms: int | None = long(None, importance=HIGH, scope=CLUSTER_WIDE)

    log_flush_offset_checkpoint_interval_ms: int = integer(60_000, low=0, importance=HIGH)

    log_flush_scheduler_interval_ms: int = long(LONG_MAX, importance=HIGH)

    log_flush_start_offset_checkpoint_interval_ms: int = integer(60_000, low=0, importance=HIGH)

    log_index_interval_bytes: int = integer(4096, low=0, scope=CLUSTER_WIDE)

    log_index_size_max_bytes: int = integer(10 << 20, low=4, scope=CLUSTER_WIDE)

    log_initial_task_delay_ms: int = long(30_000, low=0, importance=LOW, internal=True)

    log_local_retention_bytes: int = long(-2, low=-2, scope=CLUSTER_WIDE)

    log_local_retention_ms: int = long(-2, low=-2, scope=CLUSTER_WIDE)

    log_message_downconversion_enable: bool = boolean(True, importance=LOW, scope=CLUSTER_WIDE)

    log_message_format_version: str = string("3.0-IV1")

    log_message_timestamp_after_max_ms: int = long(LONG_MAX, low=0, scope=CLUSTER_WIDE)

    log_message_timestamp_before_max_ms: int = long(LONG_MAX, low=0, scope=CLUSTER_WIDE)

    log_message_timestamp_difference_max_ms: int = long(LONG_MAX, low=0, scope=CLUSTER_WIDE)

    log_message_timestamp_type: str = string(
        "CreateTime", choices=("CreateTime", "LogAppendTime"), scope=CLUSTER_WIDE
    )

    log_preallocate: bool = boolean(False, scope=CLUSTER_WIDE)

    log_retention_bytes: int = long(-1, importance=HIGH, scope=CLUSTER_WIDE)

    log_retention_check_interval_ms: int = long(300_000, low=1)

    log_retention_hours: int = integer(168, importance=HIGH)

    log_retention_minutes: int | None = integer(None, importance=HIGH)

    log_retention_ms: int | None = long(None, importance=HIGH, scope=CLUSTER_WIDE)

    log_roll_hours: int = integer(168, low=1, importance=HIGH)

    log_roll_jitter_hours: int = integer(0, low=0, importance=HIGH)

    log_roll_jitter_ms: int | None = long(None, importance=HIGH, scope=CLUSTER_WIDE)

    log_roll_ms: int | None = long(None, importance=HIGH, scope=CLUSTER_WIDE)

    log_segment_bytes: int = integer(1 << 30, low=14, importance=HIGH, scope=CLUSTER_WIDE)

    log_segment_delete_delay_ms: int = long(60_000, low=0, importance=HIGH, scope=CLUSTER_WIDE)

    num_recovery_threads_per_data_dir: int = integer(1, low=1, importance=HIGH, scope=CLUSTER_WIDE)

    num_replica_alter_log_dirs_threads: int | None = integer(None, importance=HIGH)
