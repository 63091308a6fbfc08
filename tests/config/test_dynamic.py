"""Dynamic settings on top of a property file's."""

from __future__ import annotations

import pytest

from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS
from config.dynamic import THREADS, check_dynamic_settings, with_dynamic_settings
from config.errors import ConfigError
from config.precedence import Layers


def test_a_brokers_own_setting_holds_then_the_clusters_then_the_files() -> None:
    file = BrokerConfig(log_segment_bytes=1000, log_retention_bytes=1000, message_max_bytes=1000)
    cluster = {"log.segment.bytes": "2000", "log.retention.bytes": "2000"}
    broker = {"log.segment.bytes": "3000"}

    config, problems = with_dynamic_settings(file, Layers(cluster=cluster, broker=broker))

    assert problems == []
    assert config.log_segment_bytes == 3000
    assert config.log_retention_bytes == 2000
    assert config.message_max_bytes == 1000
    assert config.topic_defaults().segment_bytes == 3000


def test_a_setting_in_milliseconds_beats_the_files_in_hours() -> None:
    file = BrokerConfig(log_retention_hours=1)
    config, _ = with_dynamic_settings(file, Layers(broker={"log.retention.ms": "5"}))
    assert config.topic_defaults().retention_ms == 5


def test_what_cannot_be_is_left_out_and_told() -> None:
    settings = {
        "log.retention.ms": "soon",
        "num.partitions": "7",
        "listeners": "PLAINTEXT://:1",
        "my.plugin": "x",
        "log.segment.bytes": "5000",
    }
    config, problems = with_dynamic_settings(BrokerConfig(), Layers(broker=settings))
    assert config.log_segment_bytes == 5000
    assert config.num_partitions == 1
    assert [problem.keys for problem in problems] == [
        ("log.retention.ms",),
        ("num.partitions",),
        ("listeners",),
    ]


@pytest.mark.parametrize(("wanted", "is_possible"), [(1, True), (4, True), (5, False), (0, False)])
def test_threads_double_or_halve_at_most(wanted: int, is_possible: bool) -> None:
    config = BrokerConfig(num_replica_fetchers=2)
    settings = {"num.replica.fetchers": str(wanted)}
    if is_possible:
        check_dynamic_settings(config, settings, is_cluster_default=True)
        return
    with pytest.raises(ConfigError, match=f"{wanted} for configuration num.replica.fetchers"):
        check_dynamic_settings(config, settings, is_cluster_default=True)


def test_throttles_are_in_no_file() -> None:
    assert "leader.replication.throttled.rate" in DYNAMIC_KEYS
    assert not DYNAMIC_KEYS.keys() & BROKER_KEYS.keys()
    check_dynamic_settings(
        BrokerConfig(), {"follower.replication.throttled.rate": "5"}, is_cluster_default=False
    )
    with pytest.raises(ConfigError):
        check_dynamic_settings(
            BrokerConfig(), {"follower.replication.throttled.rate": "-1"}, is_cluster_default=False
        )


def test_counts_of_threads_are_keys() -> None:
    assert set(THREADS) <= BROKER_KEYS.keys()
