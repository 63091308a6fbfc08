"""Texts become typed values by Apache Kafka's rules, and are refused in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.catalogue import BROKER_KEYS, TOPIC_KEYS
from config.errors import ConfigError
from config.values import format_value, normal_text, parse_value

if TYPE_CHECKING:
    from config.key import Value


def parse_broker(name: str, text: str) -> Value:
    return parse_value(name, BROKER_KEYS[name].key, text)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num.partitions", "3", 3),
        ("num.partitions", " +3 ", 3),
        ("log.retention.bytes", "-1", -1),
        ("log.retention.ms", "9223372036854775807", (1 << 63) - 1),
        ("auto.create.topics.enable", "TRUE", True),
        ("auto.create.topics.enable", "false", False),
        ("log.cleaner.min.cleanable.ratio", "1", 1.0),
        ("log.cleaner.min.cleanable.ratio", "5e-1", 0.5),
        ("log.cleaner.min.cleanable.ratio", "0.25d", 0.25),
        ("log.dirs", "/a , /b,/c", ("/a", "/b", "/c")),
        ("log.dirs", "", ()),
        ("log.cleanup.policy", "compact,delete", frozenset({"compact", "delete"})),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("broker.rack", " rack 1 ", "rack 1"),
    ],
)
def test_text_becomes_a_value(name: str, text: str, value: object) -> None:
    assert parse_broker(name, text) == value


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("num.partitions", "three", "Not a number of type INT"),
        ("num.partitions", "1_000", "Not a number of type INT"),
        ("num.partitions", "2147483648", "Not a number of type INT"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("log.retention.ms", "9223372036854775808", "Not a number of type LONG"),
        ("offsets.topic.replication.factor", "40000", "Not a number of type SHORT"),
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("log.cleaner.min.cleanable.ratio", "half", "Not a number of type DOUBLE"),
        ("log.cleaner.min.cleanable.ratio", "2", "Value must be no more than 1"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.type", "zip", "String must be one of: uncompressed, zstd, lz4"),
        ("log.cleanup.policy", "compact,zip", "String must be one of: compact, delete"),
    ],
)
def test_an_unacceptable_text_is_refused_with_key_value_and_reason(
    name: str, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_broker(name, text)
    assert str(refusal.value).startswith("Invalid value ")
    assert f" for configuration {name}: {complaint}" in str(refusal.value)


@pytest.mark.parametrize("text", ["", "*", "0:1", "0:1,2:13"])
def test_throttled_replicas_are_pairs_or_a_star(text: str) -> None:
    name = "leader.replication.throttled.replicas"
    assert format_value(parse_value(name, TOPIC_KEYS[name].key, text)) == text


def test_malformed_throttled_replicas_are_shown_as_a_list() -> None:
    name = "leader.replication.throttled.replicas"
    with pytest.raises(ConfigError, match=r"Invalid value \[0:1, x\] for configuration"):
        parse_value(name, TOPIC_KEYS[name].key, "0:1,x")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (-1, "-1"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e-05, "1.0E-5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9_999_999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-123456789.0, "-1.23456789E8"),
        (-0.0, "-0.0"),
        (float("inf"), "Infinity"),
        (("b", "a"), "b,a"),
        (frozenset({"delete", "compact"}), "compact,delete"),
        ((), ""),
    ],
)
def test_values_are_written_as_java_writes_them(value: Value, text: str | None) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("unclean.leader.election.enable", " True", "true"),
        ("retention.ms", " +0086400000\t", "86400000"),
        ("max.message.bytes", "-0", "0"),
        ("max.message.bytes", "\u0665", "5"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("min.cleanable.dirty.ratio", "5e-5", "5.0E-5"),
        ("cleanup.policy", "delete , compact,delete", "delete,compact"),
        ("cleanup.policy", " ", ""),
        ("leader.replication.throttled.replicas", "0:1, 0:0,0:1,", "0:1,0:0,0:1,"),
        ("compression.type", " gzip ", "gzip"),
    ],
)
def test_text_is_shown_normalised(name: str, text: str, shown: str) -> None:
    assert normal_text(name, TOPIC_KEYS[name].key, text) == shown


def test_invalid_text_is_shown_unchanged() -> None:
    assert normal_text("retention.ms", TOPIC_KEYS["retention.ms"].key, " soon") == " soon"


@pytest.mark.parametrize(
    ("name", "text"),
    [("num.partitions", "3\u00a0"), ("auto.create.topics.enable", "\u3000true")],
)
def test_only_blanks_that_java_trims_may_stand_around_a_value(name: str, text: str) -> None:
    with pytest.raises(ConfigError):
        parse_broker(name, text)
    assert parse_broker(name, f"\x01{text.strip()}\x1f") in (3, True)


def test_every_default_survives_being_written_and_read() -> None:
    for name, _, key in [*BROKER_KEYS.values(), *TOPIC_KEYS.values()]:
        text = format_value(key.default)
        if text is not None and key.default is not None:
            assert parse_value(name, key, text) == key.default
