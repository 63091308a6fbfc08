"""Settings of the way to the quorum, out of a configuration."""

from __future__ import annotations

import pytest

from broker.metadata_log.settings import metadata_settings
from config.broker import BrokerConfig
from config.errors import ConfigError


def test_bootstrap_servers_are_asked_before_voters() -> None:
    settings = metadata_settings(
        BrokerConfig(
            controller_quorum_bootstrap_servers=("one:9093", "[::1]:9094"),
            controller_quorum_voters=("3@three:9095",),
        )
    )
    assert settings.bootstrap == (("one", 9093), ("::1", 9094))
    assert settings.voters == {3: ("three", 9095)}


def test_voters_are_asked_where_there_are_no_bootstrap_servers() -> None:
    settings = metadata_settings(
        BrokerConfig(controller_quorum_voters=("3@three:9095", "4@four:9096"))
    )
    assert settings.bootstrap == (("three", 9095), ("four", 9096))


def test_limits_are_those_of_the_keys() -> None:
    settings = metadata_settings(
        BrokerConfig(
            controller_quorum_voters=("3@three:9095",),
            controller_listener_names=("CONTROLLER", "OTHER"),
            controller_quorum_fetch_max_bytes=11,
            controller_quorum_fetch_snapshot_max_bytes=12,
            controller_quorum_fetch_timeout_ms=13,
            controller_quorum_request_timeout_ms=14,
            controller_quorum_retry_backoff_ms=15,
            metadata_log_segment_bytes=16,
            metadata_log_segment_ms=17,
            metadata_max_retention_bytes=18,
            metadata_max_retention_ms=19,
            metadata_log_max_record_bytes_between_snapshots=20,
            metadata_log_max_snapshot_interval_ms=21,
            internal_metadata_delete_delay_millis=22,
        )
    )
    assert (settings.requests.fetch_max_bytes, settings.requests.snapshot_max_bytes) == (11, 12)
    assert (settings.fetch_timeout_ms, settings.links.timeout_ms) == (13, 14)
    assert settings.retry_backoff_ms == 15
    assert settings.log == (16, 17, 18, 19)
    assert settings.snapshots == (20, 21)
    assert (settings.delete_delay_ms, settings.listener) == (22, "CONTROLLER")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "controller.quorum.bootstrap.servers and controller.quorum.voters are empty"),
        ({"controller_quorum_voters": ("three:9095",)}, "a voter is written id@host:port"),
        ({"controller_quorum_voters": ("x@three:9095",)}, "a voter is written id@host:port"),
        ({"controller_quorum_voters": ("3@three",)}, "'three' is not host:port"),
        ({"controller_quorum_bootstrap_servers": ("one",)}, "'one' is not host:port"),
    ],
)
def test_configuration_without_a_way_to_the_quorum_is_refused(
    keys: dict[str, tuple[str, ...]], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        metadata_settings(BrokerConfig(**keys))
