"""Topic defaults come from broker keys, the strongest unit first."""

from __future__ import annotations

import pytest

from config.broker import BrokerConfig
from config.topic import TopicConfig

HOUR_MS = 3_600_000


def test_a_default_broker_gives_apache_kafkas_default_topic() -> None:
    assert BrokerConfig().topic_defaults() == TopicConfig()


@pytest.mark.parametrize(
    ("config", "retention_ms"),
    [
        (BrokerConfig(log_retention_hours=2), 2 * HOUR_MS),
        (BrokerConfig(log_retention_hours=2, log_retention_minutes=5), 300_000),
        (BrokerConfig(log_retention_minutes=5, log_retention_ms=7), 7),
        (BrokerConfig(log_retention_ms=-1), -1),
        (BrokerConfig(log_retention_hours=-1), -1),
    ],
)
def test_retention_takes_milliseconds_over_minutes_over_hours(
    config: BrokerConfig, retention_ms: int
) -> None:
    assert config.topic_defaults().retention_ms == retention_ms


def test_rolling_takes_milliseconds_over_hours() -> None:
    assert BrokerConfig(log_roll_hours=1).topic_defaults().segment_ms == HOUR_MS
    assert BrokerConfig(log_roll_hours=1, log_roll_ms=5).topic_defaults().segment_ms == 5
    assert BrokerConfig(log_roll_jitter_hours=1).topic_defaults().segment_jitter_ms == HOUR_MS


def test_flushing_falls_back_to_the_schedulers_interval() -> None:
    assert BrokerConfig(log_flush_scheduler_interval_ms=9).topic_defaults().flush_ms == 9
    config = BrokerConfig(log_flush_scheduler_interval_ms=9, log_flush_interval_ms=4)
    assert config.topic_defaults().flush_ms == 4


def test_the_older_timestamp_limit_stands_in_for_the_newer_two() -> None:
    config = BrokerConfig(
        log_message_timestamp_difference_max_ms=5, log_message_timestamp_after_max_ms=3
    )
    topic = config.topic_defaults()
    assert (topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms) == (5, 3)
