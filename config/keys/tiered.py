"""Tiered storage, which this broker does not have."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, LONG_MAX, LOW, boolean, double, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TieredKeys:
    """Tiered storage, which this broker does not have."""

    follower_fetch_last_tiered_offset_enable: bool = boolean(False, scope=CLUSTER_WIDE)

    remote_fetch_max_wait_ms: int = integer(500, low=1, scope=CLUSTER_WIDE)

    remote_list_offsets_request_timeout_ms: int = long(30_000, low=1, scope=CLUSTER_WIDE)

    remote_log_index_file_cache_total_size_bytes: int = long(
        1 << 30, low=1, importance=LOW, scope=CLUSTER_WIDE
    )

    remote_log_index_file_cache_ttl_ms: int = long(900_000, low=-1, importance=LOW, internal=True)

    remote_log_manager_copier_thread_pool_size: int = integer(-1, scope=CLUSTER_WIDE)

    remote_log_manager_copy_max_bytes_per_second: int = long(LONG_MAX, low=1, scope=CLUSTER_WIDE)

    remote_log_manager_copy_quota_window_num: int = integer(11, low=1)

    remote_log_manager_copy_quota_window_size_seconds: int = integer(1, low=1)

    remote_log_manager_expiration_thread_pool_size: int = integer(-1, scope=CLUSTER_WIDE)

    remote_log_manager_fetch_max_bytes_per_second: int = long(LONG_MAX, low=1, scope=CLUSTER_WIDE)

    remote_log_manager_fetch_quota_window_num: int = integer(11, low=1)

    remote_log_manager_fetch_quota_window_size_seconds: int = integer(1, low=1)

    remote_log_manager_follower_thread_pool_size: int = integer(2, low=1, scope=CLUSTER_WIDE)

    remote_log_manager_task_interval_ms: int = long(30_000, low=1, importance=LOW)

    remote_log_manager_task_retry_backoff_max_ms: int = long(
        30_000, low=1, importance=LOW, internal=True
    )

    remote_log_manager_task_retry_backoff_ms: int = long(500, low=1, importance=LOW, internal=True)

    remote_log_manager_task_retry_jitter: float = double(
        0.2, low=0, high=0.5, importance=LOW, internal=True
    )

    remote_log_manager_thread_pool_size: int = integer(10, low=1)

    remote_log_metadata_custom_metadata_max_bytes: int = integer(128, low=0, importance=LOW)

    remote_log_metadata_manager_class_name: str = string(
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
    )

    remote_log_metadata_manager_class_path: str | None = string(None)

    remote_log_metadata_manager_impl_prefix: str = string("rlmm.config.")

    remote_log_metadata_manager_listener_name: str | None = string(None)

    remote_log_reader_max_pending_tasks: int = integer(100, low=1)

    remote_log_reader_threads: int = integer(10, low=1, scope=CLUSTER_WIDE)

    remote_log_storage_manager_class_name: str | None = string(None)

    remote_log_storage_manager_class_path: str | None = string(None)

    remote_log_storage_manager_impl_prefix: str = string("rsm.config.")

    remote_log_storage_system_enable: bool = boolean(False)
