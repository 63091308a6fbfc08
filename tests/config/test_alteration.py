"""Changes of configuration are checked whole and applied as Apache Kafka applies them."""

from __future__ import annotations

import pytest

from config.alteration import (
    LONGEST_VALUE_BYTES,
    AlterationError,
    Operation,
    alter_incrementally,
    topic_config,
    validate_broker_config,
    validate_topic_config,
)
from config.catalogue import TOPIC_KEYS
from config.errors import ConfigError
from config.topic import TopicConfig

DEFAULTS = TopicConfig()


def test_overrides_lie_on_top_of_the_brokers_defaults() -> None:
    config = topic_config({"retention.ms": "5", "cleanup.policy": "compact"}, DEFAULTS)
    assert config.retention_ms == 5
    assert config.cleanup_policy == frozenset({"compact"})
    assert config.segment_bytes == DEFAULTS.segment_bytes


def test_a_topics_older_timestamp_limit_stands_in_for_the_newer_two() -> None:
    config = topic_config({"message.timestamp.difference.max.ms": "5"}, DEFAULTS)
    assert config.message_timestamp_before_max_ms == 5
    assert config.message_timestamp_after_max_ms == 5


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"foo": "1"}, "Unknown topic config name: foo"),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        (
            {"retention.ms": "-5"},
            "Invalid value -5 for configuration retention.ms: Value must be at least -1",
        ),
        (
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "1"},
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (1)",
        ),
    ],
)
def test_impossible_overrides_are_refused_in_apache_kafkas_words(
    overrides: dict[str, str | None], message: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        validate_topic_config(overrides, DEFAULTS)
    assert str(refusal.value) == message


def alter(current: dict[str, str], *changes: tuple[str, Operation, str | None]) -> dict[str, str]:
    return alter_incrementally(current, changes, TOPIC_KEYS)


def test_set_and_delete_leave_other_keys_alone() -> None:
    changed = alter(
        {"retention.ms": "1", "segment.ms": "2", "flush.ms": "3"},
        ("retention.ms", Operation.SET, "9"),
        ("segment.ms", Operation.DELETE, None),
    )
    assert changed == {"retention.ms": "9", "flush.ms": "3"}


def test_deleting_an_unset_key_is_no_error() -> None:
    assert alter({}, ("foo", Operation.DELETE, None)) == {}


def test_append_starts_from_the_default_and_adds_nothing_twice() -> None:
    append = ("cleanup.policy", Operation.APPEND, "compact,delete")
    assert alter({}, append) == {"cleanup.policy": "delete,compact"}


def test_subtract_removes_elements_that_are_there() -> None:
    subtract = ("cleanup.policy", Operation.SUBTRACT, "compact,other")
    assert alter({"cleanup.policy": "compact,delete"}, subtract) == {"cleanup.policy": "delete"}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            ("retention.ms", Operation.APPEND, "5"),
            ConfigError,
            "Config value append is not allowed for config key: retention.ms",
        ),
        (("foo", Operation.SUBTRACT, "x"), ConfigError, "Unknown topic config name: foo"),
        (
            ("retention.ms", Operation.SET, None),
            AlterationError,
            "Null value not supported for : retention.ms",
        ),
    ],
)
def test_operations_that_make_no_sense_are_refused(
    change: tuple[str, Operation, str | None], error: type[ConfigError], message: str
) -> None:
    with pytest.raises(error) as refusal:
        alter({}, change)
    assert str(refusal.value) == message


def test_a_key_may_be_named_once_in_a_request() -> None:
    twice = ("retention.ms", Operation.SET, "1")
    with pytest.raises(AlterationError, match=r"duplicate config keys : retention\.ms"):
        alter({}, twice, twice)


def test_a_brokers_fixed_keys_cannot_be_changed_while_it_runs() -> None:
    with pytest.raises(AlterationError) as refusal:
        validate_broker_config({"num.partitions": "3"}, is_cluster_default=False)
    assert str(refusal.value) == "Cannot update these configs dynamically: Set(num.partitions)"


def test_a_key_of_single_brokers_has_no_cluster_default() -> None:
    changes = {"sasl.kerberos.service.name": "x"}
    validate_broker_config(changes, is_cluster_default=False)
    with pytest.raises(AlterationError, match="at default cluster level"):
        validate_broker_config(changes, is_cluster_default=True)


def test_dynamic_broker_settings_are_checked_and_unknown_ones_pass() -> None:
    validate_broker_config({"my.plugin": "x", "log.retention.ms": "5"}, is_cluster_default=True)
    with pytest.raises(ConfigError, match="Not a number of type LONG"):
        validate_broker_config({"log.retention.ms": "soon"}, is_cluster_default=True)


def test_a_list_does_not_grow_beyond_what_can_be_described() -> None:
    key = "leader.replication.throttled.replicas"
    present = ",".join(["10:10"] * 5461)
    assert len(present) == LONGEST_VALUE_BYTES - 2
    assert alter({key: present}, (key, Operation.APPEND, "10:10")) == {key: present}
    with pytest.raises(ConfigError, match="exceeds the maximum value size of 32767 bytes"):
        alter({key: present}, (key, Operation.APPEND, "1:1"))


def test_a_hundred_thousand_changes_are_checked_without_comparing_each_with_each() -> None:
    names = [f"plugin.{number}" for number in range(100_000)]
    altered = alter({}, *((name, Operation.SET, "x") for name in names))
    assert list(altered) == names
