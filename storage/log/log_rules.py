"""Effective rules for one log, from its topic's configuration."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from config.key import LONG_MAX
from config.rules import milliseconds
from protocol.delays.delay_headers import LONGEST_DELAY_MS, DelayLimits
from protocol.delays.retry_headers import RetryRules, doubling, levels
from protocol.records.compression import Codec
from protocol.records.validation import ProduceRules

if TYPE_CHECKING:
    from config.topic import TopicConfig

TARGET_CODECS: Final[dict[str, Codec | None]] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""By value of `compression.type`."""

COMPACT: Final = "compact"
AWAITED_FLUSH_MS: Final = 60_000
"""Longest delay of a whole flush with `flush.messages`: records are then on the disk before they
are acknowledged, but not indexes and other files that a start rebuilds from them. To keep that
short, they follow within a minute, the interval at which recovery points are written.
"""

RULES_KEPT: Final = 256
"""Number of cached configurations: logs with the same one share its rules, which saves memory."""


def has_delays(config: TopicConfig) -> bool:
    """Return whether records may wait in a log of this configuration."""
    return config.delivery_delay_enable or config.is_retry_topic


class LogRules:
    """The configuration and what follows from it; parts of a log hold this, and see it change."""

    __slots__ = ("config", "flush_ms", "produce_rules", "roll_ms")

    config: TopicConfig
    produce_rules: ProduceRules
    roll_ms: int
    """The active segment rolls for a batch later than its first by this much, without jitter."""
    flush_ms: int
    """Longest time until appended records are flushed as a whole."""

    def __init__(self, config: TopicConfig) -> None:
        self.change(config)

    def change(self, config: TopicConfig) -> None:
        """Apply another configuration; existing segments keep theirs."""
        self.config = config
        is_compacted = COMPACT in config.cleanup_policy
        # Compaction, which may be due by then, leaves the active segment alone.
        lag_ms = config.max_compaction_lag_ms if is_compacted else config.segment_ms
        self.roll_ms = min(config.segment_ms, lag_ms)
        awaited_ms = LONG_MAX if config.flush_messages == LONG_MAX else AWAITED_FLUSH_MS
        self.flush_ms = min(config.flush_ms, awaited_ms)
        self.produce_rules = _produce_rules_of(config)


def _produce_rules_of(config: TopicConfig) -> ProduceRules:
    """One object for all logs whose topics have equal configurations.

    Most have the same, and come one after the other: to hash it takes longer than all else here.
    """
    latest = _latest[0]
    if latest is None or latest[0] is not config:
        latest = _latest[0] = config, _produce_rules(config)
    return latest[1]


_latest: Final[list[tuple[TopicConfig, ProduceRules] | None]] = [None]


@lru_cache(maxsize=RULES_KEPT)
def _produce_rules(config: TopicConfig) -> ProduceRules:
    return ProduceRules(
        max_message_bytes=config.max_message_bytes,
        is_compacted=COMPACT in config.cleanup_policy,
        is_log_append_time=config.message_timestamp_type == "LogAppendTime",
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        target_codec=TARGET_CODECS[config.compression_type],
        compression_level=_compression_level(config),
        is_hurried=True,
        delays=_delay_limits(config),
    )


def _delay_limits(config: TopicConfig) -> DelayLimits | None:
    if not has_delays(config):
        return None
    largest = min(config.max_message_bytes, config.segment_bytes)
    default_ms = min(config.delivery_delay_ms, LONGEST_DELAY_MS)
    most_ms = min(config.delivery_delay_max_ms, LONGEST_DELAY_MS)
    return DelayLimits(default_ms, most_ms, largest, _retry_rules(config))


def _retry_rules(config: TopicConfig) -> RetryRules | None:
    attempts = config.retry_max_attempts
    match config.retry_policy:
        case "levels":
            delays_ms = map(milliseconds, config.retry_levels)
            return levels([min(delay, LONGEST_DELAY_MS) for delay in delays_ms], attempts)
        case "exponential":
            most_ms = min(config.retry_backoff_max_ms, LONGEST_DELAY_MS)
            return doubling(config.retry_backoff_ms, most_ms, attempts)
    return None


def _compression_level(config: TopicConfig) -> int | None:
    match config.compression_type:
        case "gzip":
            return config.compression_gzip_level if config.compression_gzip_level > 0 else None
        case "lz4":
            return config.compression_lz4_level
        case "zstd":
            return config.compression_zstd_level
    return None
