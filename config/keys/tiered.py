"""Tiered storage, which this broker does not have."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, LONG_MAX, LOW, boolean, double, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TieredKeys:
    """Tiered storage, which this broker does not have."""

    follower_fetch_last_tiered_offset_enable: bool = boolean(False, scope=CLUSTER_WIDE)
    """Start a new follower at the end offset of tiered storage."""

    remote_fetch_max_wait_ms: int = integer(500, low=1, scope=CLUSTER_WIDE)
    """Time that a fetch waits for tiered storage."""

    remote_list_offsets_request_timeout_ms: int = long(30_000, low=1, scope=CLUSTER_WIDE)
    """Time that ListOffsets waits for tiered storage."""

    remote_log_index_file_cache_total_size_bytes: int = long(
        1 << 30, low=1, importance=LOW, scope=CLUSTER_WIDE
    )
    """Disk used for indexes of tiered segments."""

    remote_log_index_file_cache_ttl_ms: int = long(900_000, low=-1, importance=LOW, internal=True)
    """Disuse after which such an index is dropped."""

    remote_log_manager_copier_thread_pool_size: int = integer(-1, scope=CLUSTER_WIDE)
    """Threads that copy segments to tiered storage."""

    remote_log_manager_copy_max_bytes_per_second: int = long(LONG_MAX, low=1, scope=CLUSTER_WIDE)
    """Bytes per second copied to tiered storage."""

    remote_log_manager_copy_quota_window_num: int = integer(11, low=1)
    """Samples kept to throttle that."""

    remote_log_manager_copy_quota_window_size_seconds: int = integer(1, low=1)
    """Span of each of those samples."""

    remote_log_manager_expiration_thread_pool_size: int = integer(-1, scope=CLUSTER_WIDE)
    """Threads that delete from tiered storage."""

    remote_log_manager_fetch_max_bytes_per_second: int = long(LONG_MAX, low=1, scope=CLUSTER_WIDE)
    """Bytes per second read from tiered storage."""

    remote_log_manager_fetch_quota_window_num: int = integer(11, low=1)
    """Samples kept to throttle that."""

    remote_log_manager_fetch_quota_window_size_seconds: int = integer(1, low=1)
    """Span of each of those samples."""

    remote_log_manager_follower_thread_pool_size: int = integer(2, low=1, scope=CLUSTER_WIDE)
    """Threads that follow the segments that leaders have tiered."""

    remote_log_manager_task_interval_ms: int = long(30_000, low=1, importance=LOW)
    """Interval between checks for segments to be tiered."""

    remote_log_manager_task_retry_backoff_max_ms: int = long(
        30_000, low=1, importance=LOW, internal=True
    )
    """Longest wait before that is tried again."""

    remote_log_manager_task_retry_backoff_ms: int = long(500, low=1, importance=LOW, internal=True)
    """First wait before that is tried again."""

    remote_log_manager_task_retry_jitter: float = double(
        0.2, low=0, high=0.5, importance=LOW, internal=True
    )
    """Random share of that wait."""

    remote_log_manager_thread_pool_size: int = integer(10, low=1)
    """Threads for tiered storage where no other key gives a number."""

    remote_log_metadata_custom_metadata_max_bytes: int = integer(128, low=0, importance=LOW)
    """Bytes a storage plug-in may add to a segment's metadata."""

    remote_log_metadata_manager_class_name: str = string(
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
    )
    """Java class that keeps the metadata of tiered segments."""

    remote_log_metadata_manager_class_path: str | None = string(None)
    """Class path of that class."""

    remote_log_metadata_manager_impl_prefix: str = string("rlmm.config.")
    """Prefix of keys handed to that class."""

    remote_log_metadata_manager_listener_name: str | None = string(None)
    """Listener through which that class connects."""

    remote_log_reader_max_pending_tasks: int = integer(100, low=1)
    """Reads from tiered storage that may wait."""

    log_remote_copy_lag_bytes: int = long(-1, low=-1, scope=CLUSTER_WIDE)
    """Default of the topic key `remote.copy.lag.bytes`."""

    log_remote_copy_lag_ms: int = long(0, low=-1, scope=CLUSTER_WIDE)
    """Default of the topic key `remote.copy.lag.ms`."""

    remote_log_reader_threads: int = integer(10, low=1, scope=CLUSTER_WIDE)
    """Threads that read from tiered storage."""

    remote_log_storage_manager_class_name: str | None = string(None)
    """Java class that is the tiered storage."""

    remote_log_storage_manager_class_path: str | None = string(None)
    """Class path of that class."""

    remote_log_storage_manager_impl_prefix: str = string("rsm.config.")
    """Prefix of keys handed to that class."""

    remote_log_storage_system_enable: bool = boolean(False)
    """Use tiered storage."""
