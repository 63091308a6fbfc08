"""Committed offsets and the topic that holds them."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import HIGH, integer, long, short


@dataclass(frozen=True, init=False, repr=False, eq=False)
class OffsetKeys:
    """Committed offsets and the topic that holds them."""

    offset_metadata_max_bytes: int = integer(4096, importance=HIGH)

    offsets_commit_required_acks: int = short(-1, importance=HIGH)

    offsets_commit_timeout_ms: int = integer(5000, low=1, importance=HIGH)

    offsets_load_buffer_size: int = integer(5 << 20, low=1, importance=HIGH)

    offsets_retention_check_interval_ms: int = long(600_000, low=1, importance=HIGH)

    offsets_retention_minutes: int = integer(10_080, low=1, importance=HIGH)

    offsets_topic_compression_codec: int = integer(0, importance=HIGH)

    offsets_topic_num_partitions: int = integer(50, low=1, importance=HIGH)

    offsets_topic_replication_factor: int = short(3, low=1, importance=HIGH)

    offsets_topic_segment_bytes: int = integer(100 << 20, low=1, importance=HIGH)
