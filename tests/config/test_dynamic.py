"""Dynamic settings on top of a property file's."""

from __future__ import annotations

import itertools

import pytest

from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS
from config.dynamic import THREADS, check_dynamic_settings, with_dynamic_settings
from config.errors import ConfigError
from config.listeners.endpoints import KEYS, Endpoint, read_listeners
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


def test_invalid_dynamic_settings_are_ignored_and_reported() -> None:
    settings = {
        "log.retention.ms": "soon",
        "num.partitions": "7",
        "listeners": "PLAINTEXT://:1,EXTERNAL://:2",
        "principal.builder.class": "com.example.Builder",
        "my.plugin": "x",
        "log.segment.bytes": "5000",
    }
    config, problems = with_dynamic_settings(BrokerConfig(), Layers(broker=settings))
    assert config.log_segment_bytes == 5000
    assert config.num_partitions == 1
    assert config.listeners == BrokerConfig().listeners
    assert [problem.keys for problem in problems] == [
        KEYS,
        ("log.retention.ms",),
        ("num.partitions",),
        ("principal.builder.class",),
    ]


def test_listeners_and_their_protocol_map_change_together() -> None:
    settings = {
        "listeners": "PLAINTEXT://:1,EXTERNAL://:2",
        "advertised.listeners": "EXTERNAL://kafka.example:443,PLAINTEXT://:1",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:SSL",
    }
    for order in itertools.permutations(settings):
        broker = {name: settings[name] for name in order}
        check_dynamic_settings(BrokerConfig(), broker, is_cluster_default=False)
        config, problems = with_dynamic_settings(BrokerConfig(), Layers(broker=broker))
        assert not problems
        assert read_listeners(config).bound[1] == Endpoint("EXTERNAL", "SSL", "", 2)
        assert read_listeners(config).advertised[0].host == "kafka.example"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"listeners": "SSL://:1"}, "must be one of the advertised listeners"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "a different port"),
        ({"advertised.listeners": "SSL://:1"}, "SSL is not among the listeners"),
        ({"listener.security.protocol.map": "SSL:SSL"}, "no security protocol is given"),
        ({"listeners": ""}, "at least one listener"),
    ],
)
def test_invalid_listener_settings_are_ignored_together(settings: dict[str, str], why: str) -> None:
    layers = Layers(broker={**settings, "log.segment.bytes": "5000"})
    config, [problem] = with_dynamic_settings(BrokerConfig(), layers)
    assert why in str(problem)
    assert problem.keys == KEYS
    assert read_listeners(config) == read_listeners(BrokerConfig())
    assert config.log_segment_bytes == 5000


def test_listeners_are_of_one_broker() -> None:
    with pytest.raises(ConfigError, match="broker id must be specified"):
        check_dynamic_settings(
            BrokerConfig(), {"listeners": "PLAINTEXT://:1"}, is_cluster_default=True
        )


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
