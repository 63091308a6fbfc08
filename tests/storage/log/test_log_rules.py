"""A topic's configuration as rules for its logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from config.key import LONG_MAX
from config.topic import TopicConfig
from protocol.delays.delay_headers import AT_ONCE
from protocol.delays.retry_headers import DEAD
from protocol.records.compression import Codec
from storage.log.log_rules import LogRules

COMPACTED = frozenset({"compact"})


@pytest.mark.parametrize(
    ("config", "roll_ms"),
    [
        (TopicConfig(segment_ms=500, max_compaction_lag_ms=100), 500),
        (TopicConfig(segment_ms=500, max_compaction_lag_ms=100, cleanup_policy=COMPACTED), 100),
        (TopicConfig(segment_ms=500, max_compaction_lag_ms=900, cleanup_policy=COMPACTED), 500),
    ],
)
def test_segments_roll_early_enough_to_be_compacted(config: TopicConfig, roll_ms: int) -> None:
    assert LogRules(config).roll_ms == roll_ms


@pytest.mark.parametrize(
    ("config", "codec", "level"),
    [
        (TopicConfig(), None, None),
        (TopicConfig(compression_type="uncompressed"), Codec.NONE, None),
        (TopicConfig(compression_type="gzip"), Codec.GZIP, None),
        (TopicConfig(compression_type="gzip", compression_gzip_level=3), Codec.GZIP, 3),
        (TopicConfig(compression_type="lz4", compression_lz4_level=4), Codec.LZ4, 4),
        (TopicConfig(compression_type="zstd", compression_zstd_level=5), Codec.ZSTD, 5),
        (TopicConfig(compression_type="snappy"), Codec.SNAPPY, None),
    ],
)
def test_batches_get_the_codec_and_level_of_the_topic(
    config: TopicConfig, codec: Codec | None, level: int | None
) -> None:
    rules = LogRules(config).produce_rules

    assert (rules.target_codec, rules.compression_level) == (codec, level)


def test_logs_of_the_same_configuration_share_what_follows_from_it() -> None:
    one, other = LogRules(TopicConfig()), LogRules(TopicConfig())

    assert one.produce_rules is other.produce_rules
    other.change(TopicConfig(max_message_bytes=7))
    assert (one.produce_rules.max_message_bytes, other.produce_rules.max_message_bytes) != (7, 7)
    assert other.produce_rules.max_message_bytes == other.config.max_message_bytes == 7


@pytest.mark.parametrize(
    "retries",
    [
        TopicConfig(retry_policy="exponential", retry_backoff_max_ms=LONG_MAX),
        TopicConfig(retry_policy="levels", retry_levels=("1s", "999999999999d")),
    ],
)
def test_no_delay_of_a_retry_topic_makes_a_dead_letter_of_a_record(retries: TopicConfig) -> None:
    config = replace(retries, retry_max_attempts=100)
    limits = LogRules(config).produce_rules.delays
    assert limits is not None
    assert limits.retries is not None
    assert len(limits.retries.delays_ms) == 100
    assert all(AT_ONCE - delay_ms > DEAD for delay_ms in limits.retries.delays_ms)
