"""Committed offsets and the topic that holds them."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import HIGH, integer, long, short


@dataclass(frozen=True, init=False, repr=False, eq=False)
class OffsetKeys:
    """Committed offsets and the topic that holds them."""

    offset_metadata_max_bytes: int = integer(4096, importance=HIGH, acts=True)
    """Bytes of metadata a commit may carry."""

    offsets_commit_required_acks: int = short(-1, importance=HIGH)
    """Acknowledgements a commit needs; -1 is all in-sync replicas."""

    offsets_commit_timeout_ms: int = integer(5000, low=1, importance=HIGH, acts=True)
    """Time that a commit waits for them."""

    offsets_load_buffer_size: int = integer(5 << 20, low=1, importance=HIGH)
    """Bytes read at a time when groups are loaded."""

    offsets_retention_check_interval_ms: int = long(600_000, low=1, importance=HIGH, acts=True)
    """Interval between checks for expired offsets."""

    offsets_retention_minutes: int = integer(10_080, low=1, importance=HIGH, acts=True)
    """Retention time of the offsets of an empty group, or of no group."""

    offsets_topic_compression_codec: int = integer(0, low=0, high=4, importance=HIGH)
    """Codec of the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""

    offsets_topic_num_partitions: int = integer(50, low=1, importance=HIGH, acts=True)
    """Partitions of the offsets topic."""

    offsets_topic_replication_factor: int = short(3, low=1, importance=HIGH, acts=True)
    """Replicas of the offsets topic."""

    offsets_topic_segment_bytes: int = integer(100 << 20, low=1, importance=HIGH, acts=True)
    """Segment size of the offsets topic."""
