"""The topic keys, and a topic's configuration as typed values."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import (
    HOUR_MS,
    LONG_MAX,
    LOW,
    boolean,
    double,
    integer,
    long,
    string,
    string_set,
    strings,
)
from config.rules import Durations, RangeOr, ThrottledReplicas


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Configuration of a topic; `TopicConfig()` is Apache Kafka's default topic."""

    cleanup_policy: frozenset[str] = string_set(
        "delete", choices=("compact", "delete"), acts=True, broker_keys=("log.cleanup.policy",)
    )
    """Cleanup of old records: `delete` drops segments, `compact` keeps the last record of each
    key."""

    compression_gzip_level: int = integer(
        -1, rule=RangeOr(-1, 1, 9), acts=True, broker_keys=("compression.gzip.level",)
    )
    """Level at which the broker recompresses with gzip; -1 is gzip's own default."""

    compression_lz4_level: int = integer(
        9, low=1, high=17, acts=True, broker_keys=("compression.lz4.level",)
    )
    """Level at which the broker recompresses with lz4."""

    compression_type: str = string(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        acts=True,
        broker_keys=("compression.type",),
    )
    """Codec records are kept in; `producer` keeps the one they were sent with."""

    compression_zstd_level: int = integer(
        3, low=-131_072, high=22, acts=True, broker_keys=("compression.zstd.level",)
    )
    """Level at which the broker recompresses with zstd."""

    delete_retention_ms: int = long(
        86_400_000, low=0, acts=True, broker_keys=("log.cleaner.delete.retention.ms",)
    )
    """Time for which compaction keeps a tombstone for readers that are still behind it."""

    delivery_delay_enable: bool = boolean(False, importance=LOW, acts=True)
    """Hold back records with a header `deliver-at` or `deliver-after` (docs/messaging.md).

    Records that wait already are still delivered when this is turned off."""

    delivery_delay_max_ms: int = long(604_800_000, low=0, importance=LOW, acts=True)
    """Longest delay of a record; one that asks for more is refused."""

    delivery_delay_ms: int = long(0, low=0, importance=LOW, acts=True)
    """Delay of records without delay headers, where `delivery.delay.enable` is set."""

    errors_deadletterqueue_group_enable: bool = boolean(False)
    """Allow share groups to write dead letters to the topic."""

    file_delete_delay_ms: int = long(
        60_000, low=0, acts=True, broker_keys=("log.segment.delete.delay.ms",)
    )
    """Time for which a deleted segment's files stay on disk for readers that still hold them."""

    flush_messages: int = long(
        LONG_MAX, low=1, acts=True, broker_keys=("log.flush.interval.messages",)
    )
    """Number of records after which the log is forced to disk."""

    flush_ms: int = long(
        LONG_MAX,
        low=0,
        acts=True,
        broker_keys=(
            "log.flush.interval.ms",
            "log.flush.scheduler.interval.ms",
        ),
    )
    """Time after which the log is forced to disk."""

    flush_replicas: str = string("all", choices=("all", "leader"), acts=True)
    """Whose disks `flush.messages` waits for: `all`, as in Apache Kafka, or only the `leader`'s."""

    follower_replication_throttled_replicas: tuple[str, ...] = strings(
        rule=ThrottledReplicas(), acts=True
    )
    """Replicas, as `partition:broker` pairs or `*`, whose fetching as follower is throttled."""

    index_interval_bytes: int = integer(
        4096, low=0, acts=True, broker_keys=("log.index.interval.bytes",)
    )
    """Bytes of log between two entries of the offset index."""

    internal_segment_bytes: int | None = integer(None, internal=True)
    """Segment size without the usual lower bound, for tests of Apache Kafka itself."""

    key_index_enable: bool = boolean(False, importance=LOW, acts=True)
    """Index closed segments by key and by the header `message-id`.

    This broker's alone. Records are looked up at `key.index.port`."""

    leader_replication_throttled_replicas: tuple[str, ...] = strings(
        rule=ThrottledReplicas(), acts=True
    )
    """Replicas, as `partition:broker` pairs or `*`, whose serving as leader is throttled."""

    local_retention_bytes: int = long(-2, low=-2, broker_keys=("log.local.retention.bytes",))
    """Size kept locally of a tiered partition; -2 takes `retention.bytes`."""

    local_retention_ms: int = long(-2, low=-2, broker_keys=("log.local.retention.ms",))
    """Age kept locally of a tiered partition; -2 takes `retention.ms`."""

    max_compaction_lag_ms: int = long(
        LONG_MAX, low=1, acts=True, broker_keys=("log.cleaner.max.compaction.lag.ms",)
    )
    """Longest time a record stays out of reach of compaction."""

    max_decompressed_message_bytes: int = integer(
        2_147_483_639,
        low=1,
        high=2_147_483_639,
        broker_keys=("max.decompressed.message.bytes",),
    )
    """Largest record that producers may write, once decompressed."""

    max_message_bytes: int = integer(
        1_048_588, low=0, acts=True, broker_keys=("message.max.bytes",)
    )
    """Largest record batch, as compressed, that a producer may append."""

    message_downconversion_enable: bool = boolean(
        True, importance=LOW, broker_keys=("log.message.downconversion.enable",)
    )
    """Rewrite batches for consumers of older record formats; never done here."""

    message_format_version: str = string("3.0-IV1", broker_keys=("log.message.format.version",))
    """Record format version of Apache Kafka before 3.0; accepted and without effect."""

    message_timestamp_after_max_ms: int = long(
        HOUR_MS, low=0, acts=True, broker_keys=("log.message.timestamp.after.max.ms",)
    )
    """Largest lead of a record's timestamp over the broker's clock."""

    message_timestamp_before_max_ms: int = long(
        LONG_MAX, low=0, acts=True, broker_keys=("log.message.timestamp.before.max.ms",)
    )
    """Largest lag of a record's timestamp behind the broker's clock."""

    message_timestamp_difference_max_ms: int = long(
        LONG_MAX, low=0, acts=True, broker_keys=("log.message.timestamp.difference.max.ms",)
    )
    """Older key for both timestamp limits; used where a newer one is at its default."""

    message_timestamp_type: str = string(
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        acts=True,
        broker_keys=("log.message.timestamp.type",),
    )
    """Timestamp of a record: the time of its creation, or that of its append."""

    min_cleanable_dirty_ratio: float = double(
        0.5, low=0, high=1, acts=True, broker_keys=("log.cleaner.min.cleanable.ratio",)
    )
    """Share of the log that must be uncompacted before compaction is worth it."""

    min_compaction_lag_ms: int = long(
        0, low=0, acts=True, broker_keys=("log.cleaner.min.compaction.lag.ms",)
    )
    """Time for which a record is safe from compaction."""

    min_insync_replicas: int = integer(1, low=1, acts=True, broker_keys=("min.insync.replicas",))
    """In-sync replicas needed to accept a produce request with acks=all."""

    preallocate: bool = boolean(False, broker_keys=("log.preallocate",))
    """Create a new segment's file at its full size."""

    remote_copy_lag_bytes: int = long(-1, low=-1, broker_keys=("log.remote.copy.lag.bytes",))
    """Newest bytes of closed segments that are not copied to tiered storage yet."""

    remote_copy_lag_ms: int = long(0, low=-1, broker_keys=("log.remote.copy.lag.ms",))
    """Age before which a closed segment is not copied to tiered storage."""

    remote_log_copy_disable: bool = boolean(False)
    """Stop copying segments to tiered storage."""

    remote_log_delete_on_disable: bool = boolean(False)
    """Delete the topic's tiered segments when tiered storage is turned off."""

    remote_storage_enable: bool = boolean(False)
    """Copy the topic's older segments to tiered storage."""

    retention_bytes: int = long(-1, acts=True, broker_keys=("log.retention.bytes",))
    """Size a partition may reach before its oldest segments are deleted; -1 is no limit."""

    retention_ms: int = long(
        604_800_000,
        low=-1,
        acts=True,
        broker_keys=(
            "log.retention.ms",
            "log.retention.minutes",
            "log.retention.hours",
        ),
    )
    """Age at which a segment is deleted; -1 is no limit."""

    retry_backoff_max_ms: int = long(7_200_000, low=1, importance=LOW, acts=True)
    """Longest delay of a retry with `retry.policy=exponential`."""

    retry_backoff_ms: int = long(1_000, low=1, importance=LOW, acts=True)
    """Delay of the first retry with `retry.policy=exponential`; it doubles with each one."""

    retry_dead_letter_topic: str = string("", importance=LOW, acts=True)
    """Topic for records that have failed too often.

    Empty means the topic's own name with the suffix `.dlq`, instead of `.retry` if it has that."""

    retry_levels: tuple[str, ...] = strings(
        *("10s", "30s", "1m", "2m", "3m", "4m", "5m", "6m"),
        *("7m", "8m", "9m", "10m", "20m", "30m", "1h", "2h"),
        rule=Durations(1_000),
        importance=LOW,
        acts=True,
    )
    """Delays of the first retry, the second and so on with `retry.policy=levels`; the last repeats.

    The default is that of RocketMQ.
    """

    retry_max_attempts: int = integer(16, low=1, high=1_000, importance=LOW, acts=True)
    """Retries of a record; when it comes once more, it goes to the dead letters."""

    retry_policy: str = string(
        "none", choices=("none", "levels", "exponential"), importance=LOW, acts=True
    )
    """Makes this a retry topic: records sent to it are given back after a delay
    (docs/messaging.md).

    By `retry.levels` or by `retry.backoff.ms`. Includes what `delivery.delay.enable` does."""

    segment_bytes: int = integer(1 << 30, low=14, acts=True, broker_keys=("log.segment.bytes",))
    """Size at which the active segment is closed and a new one is begun."""

    segment_index_bytes: int = integer(
        5 << 21, low=4, acts=True, broker_keys=("log.index.size.max.bytes",)
    )
    """Size reserved for each index of a segment; a full index closes the segment."""

    segment_jitter_ms: int = long(
        0,
        low=0,
        acts=True,
        broker_keys=(
            "log.roll.jitter.ms",
            "log.roll.jitter.hours",
        ),
    )
    """Largest random time taken off `segment.ms`, so that segments do not roll all at once."""

    segment_ms: int = long(
        604_800_000,
        low=1,
        acts=True,
        broker_keys=(
            "log.roll.ms",
            "log.roll.hours",
        ),
    )
    """Age at which the active segment is closed even if it is not full."""

    unclean_leader_election_enable: bool = boolean(
        False, acts=True, broker_keys=("unclean.leader.election.enable",)
    )
    """Allow a replica that is not in sync to become leader, which can lose records."""

    @property
    def is_retry_topic(self) -> bool:
        """True if records sent to it are given back later."""
        return self.retry_policy != "none"
