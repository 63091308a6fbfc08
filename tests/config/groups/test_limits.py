"""Bounds of a group's configuration, and values in effect when the broker's bounds change."""

from __future__ import annotations

import pytest

from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS, GROUP_KEYS
from config.errors import ConfigError
from config.groups.limits import BOUNDS, effective_values, validate_group_config

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("no.such", "1", "Unknown group config name: no.such"),
        (SESSION, "44999", f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        (SESSION, "60001", f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        (SESSION, "soon", f"Invalid value soon for configuration {SESSION}"),
        ("share.delivery.count.limit", "1", "Invalid value 1"),
        ("share.isolation.level", "none", "Invalid value none"),
        ("streams.num.standby.replicas", "3", "must be less than or equal to 2"),
    ],
)
def test_group_configs_out_of_bounds_are_refused(name: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        validate_group_config({name: text}, BrokerConfig())


def test_a_session_is_longer_than_a_heartbeat_be_it_the_groups_or_the_brokers() -> None:
    broker = BrokerConfig(group_consumer_min_session_timeout_ms=1)
    with pytest.raises(ConfigError, match=f"{SESSION} must be greater than {HEARTBEAT}"):
        validate_group_config({SESSION: "5000"}, broker)
    values = validate_group_config({SESSION: "7000", HEARTBEAT: "6000"}, broker)
    assert values == {SESSION: 7000, HEARTBEAT: 6000}


def test_the_bound_holds_where_it_is_narrower_than_what_was_stored() -> None:
    stored = {SESSION: "60000", HEARTBEAT: "5000", "share.isolation.level": "read_committed"}
    broker = BrokerConfig(
        group_consumer_max_session_timeout_ms=50_000, group_consumer_min_heartbeat_interval_ms=6000
    )
    assert effective_values("g", stored, broker) == {
        SESSION: 50_000,
        HEARTBEAT: 6000,
        "share.isolation.level": "read_committed",
    }


def test_unknown_and_malformed_stored_group_configs_are_ignored() -> None:
    stored = {"tomorrows.key": "1", SESSION: "x", "streams.num.standby.replicas": "2"}
    assert effective_values("g", stored, BrokerConfig()) == {"streams.num.standby.replicas": 2}


def test_bounds_and_defaults_are_of_broker_keys_that_exist() -> None:
    assert BOUNDS.keys() <= GROUP_KEYS.keys()
    assert {name for pair in BOUNDS.values() for name in pair if name} <= BROKER_KEYS.keys()
    named = {name for one in GROUP_KEYS.values() for name in one.key.broker_keys}
    assert named <= BROKER_KEYS.keys()
