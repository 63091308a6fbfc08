"""The log cleaner."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, DOUBLE_MAX, LONG_MAX, boolean, double, integer, long


@dataclass(frozen=True, init=False, repr=False, eq=False)
class CleanerKeys:
    """Log cleaner."""

    log_cleaner_backoff_ms: int = long(15_000, low=0, acts=True, scope=CLUSTER_WIDE)
    """Pause of the cleaner when no log needs cleaning."""

    log_cleaner_dedupe_buffer_size: int = long(128 << 20, acts=True, scope=CLUSTER_WIDE)
    """Memory all cleaner threads together may use to remember keys."""

    log_cleaner_delete_retention_ms: int = long(86_400_000, low=0, acts=True, scope=CLUSTER_WIDE)
    """Default of the topic key `delete.retention.ms`."""

    log_cleaner_enable: bool = boolean(True, acts=True)
    """Compact the topics whose `cleanup.policy` includes `compact`."""

    log_cleaner_io_buffer_load_factor: float = double(0.9, acts=True, scope=CLUSTER_WIDE)
    """Load factor of the cleaner's key map."""

    log_cleaner_io_buffer_size: int = integer(512 << 10, low=0, acts=True, scope=CLUSTER_WIDE)
    """Memory all cleaner threads together may use to read and write."""

    log_cleaner_io_max_bytes_per_second: float = double(DOUBLE_MAX, acts=True, scope=CLUSTER_WIDE)
    """Bytes per second the cleaner may read and write."""

    log_cleaner_max_compaction_lag_ms: int = long(LONG_MAX, low=1, acts=True, scope=CLUSTER_WIDE)
    """Default of the topic key `max.compaction.lag.ms`."""

    log_cleaner_min_cleanable_ratio: float = double(
        0.5, low=0, high=1, acts=True, scope=CLUSTER_WIDE
    )
    """Default of the topic key `min.cleanable.dirty.ratio`."""

    log_cleaner_min_compaction_lag_ms: int = long(0, low=0, acts=True, scope=CLUSTER_WIDE)
    """Default of the topic key `min.compaction.lag.ms`."""

    log_cleaner_threads: int = integer(1, low=0, acts=True, scope=CLUSTER_WIDE)
    """Threads that compact."""
