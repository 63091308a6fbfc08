"""Values of configuration keys are taken or refused as Apache Kafka 4.4.0 does.

The probes of a key are texts around its bounds, Apache Kafka's and ours, and texts that are no
values of most keys. Keys that only 3.9.1 has are not compared; what differs stands in EXCEPTIONS.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from broker.telemetry import subscription
from config.alteration import validate_topic_config
from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS
from config.errors import ConfigError
from config.groups.limits import validate_group_config
from config.loader import load_broker_config
from config.topic import TopicConfig
from protocol.errors import ApiError
from tests.golden import java_configs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from config.catalogue import NamedKey

    Check = Callable[[str, str], object]

pytestmark = [pytest.mark.java, pytest.mark.process, pytest.mark.slow]

NUMBERS = ("INT", "LONG", "SHORT", "DOUBLE")
AROUND_MOST_BOUNDS = (-3, -1, 0, 1, 9, 14, 1000, 1_048_575, 1_048_576, (1 << 31) - 1)
NO_NUMBERS = ("", "x", "0.5", "5L")
TEXTS = ("", ",", "x", "x,x", "x,", "x,,y", "TRUE")

EXCEPTIONS = {
    "names of classes": "4.4.0 loads them; this broker knows a few by name, and loads none",
    "KRaft": "without effect here, where there is no quorum",
    "tiered storage": "without effect here; 3.9.1's bounds, which hold its defaults",
    "segments": "3.9.1's smallest segment: GAPS.md",
    "ids": "the test's own configurations state one",
    "listeners": "without effect here",
    "order": "a session timeout above the largest or below the smallest is never valid",
    "no threads": "4.4.0 divides by zero",
    "directories": "4.4.0 refuses repeated ones when it opens them",
}
"""Reasons, by what they are about."""
OF_NAMES = {
    "names of classes": r".*\.class(\.name)?|group\.\w+\.assignors",
    "KRaft": r"process\.roles|controller\..*|metadata\.log\..*",
    "tiered storage": r"remote\.log\..*",
    "segments": r"(log\.)?segment\.bytes",
    "ids": r"(broker|node)\.id",
    "listeners": r"early\.start\.listeners|cordoned\.log\.dirs",
    "order": r"group\.(min|max)\.session\.timeout\.ms",
    "no threads": r"log\.cleaner\.threads",
    "directories": r"log\.dirs?",
}
"""Patterns of the keys that a reason holds for."""


def probes(kind: str, rows: Mapping[str, NamedKey]) -> Iterator[tuple[str, str, str]]:
    """Kind, key and text, for each key that both have."""
    excepted = re.compile("|".join(OF_NAMES.values()))
    for name, (key_type, bounds) in java_configs.keys(kind).items():
        if name in rows and not excepted.fullmatch(name):
            found = numbers if key_type in NUMBERS else words
            texts = found(f"{bounds} {rows[name].key.rule or ''}")
            yield from ((kind, name, text) for text in dict.fromkeys(texts))


def numbers(bounds: str) -> Iterator[str]:
    stated = map(int, re.findall(r"-?\d+", bounds))
    yield from NO_NUMBERS
    near = {bound + step for bound in stated for step in (-1, 0, 1)}
    yield from map(str, sorted({*AROUND_MOST_BOUNDS, *near}))


def words(bounds: str) -> Iterator[str]:
    yield from TEXTS
    for word in re.findall(r"[\w.]+", bounds):
        yield from (word, word.swapcase(), f"{word},", f"{word},{word}")


def complaint(check: Check, name: str, text: str) -> str:
    try:
        check(name, text)
    except (ConfigError, ApiError) as error:
        return str(error)
    return ""


def differences(values: Iterable[tuple[str, str, str]], check: Check) -> dict[str, str]:
    """Apache Kafka's complaint and ours, of values of which only one of the two complains."""
    values = list(values)
    assert len(values) > len(TEXTS)
    found = {}
    for (_, name, text), theirs in zip(values, java_configs.complaints(values), strict=True):
        ours = complaint(check, name, text)
        if bool(ours) != bool(theirs):
            found[f"{name}={text}"] = f"Apache: {theirs or 'taken'}; ours: {ours or 'taken'}"
    return found


def test_property_file_is_refused_for_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"

    def check(name: str, text: str) -> None:
        path.write_text(f"broker.id=0\n{name}={text}\n", "utf-8")
        load_broker_config(path)

    assert differences(probes("broker", BROKER_KEYS), check) == {}


def test_topics_are_refused_for_the_same_values() -> None:
    def check(name: str, text: str) -> None:
        validate_topic_config({name: text}, TopicConfig())

    assert differences(probes("topic", TOPIC_KEYS), check) == {}


def test_groups_are_refused_for_the_same_values() -> None:
    def check(name: str, text: str) -> None:
        validate_group_config({name: text}, BrokerConfig())

    assert differences(probes("group", GROUP_KEYS), check) == {}


def test_subscriptions_to_metrics_are_refused_for_the_same_values() -> None:
    def check(name: str, text: str) -> None:
        subscription.parse({name: text})

    assert differences(probes("client metrics", subscription.KEYS), check) == {}


def test_every_exception_has_its_reason() -> None:
    assert EXCEPTIONS.keys() == OF_NAMES.keys()
