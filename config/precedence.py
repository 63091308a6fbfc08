"""Order of precedence among several settings of one key, and their sources.

Strongest first: the topic's or the group's own, this broker's dynamic one, the cluster's dynamic
default, the property file, Apache Kafka's default. Within one place, the first of a key's synonyms
wins: `log.retention.ms` over `log.retention.minutes` over `log.retention.hours`.

This is the only place that knows the order. It works on texts, because DescribeConfigs shows
settings as written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS, GROUP_KEYS, TOPIC_KEYS
from config.values import format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

# Keys for the same setting in larger units, used where this one is not set.
_SYNONYMS = {
    "log.retention.ms": ("log.retention.minutes", "log.retention.hours"),
    "log.roll.ms": ("log.roll.hours",),
    "log.roll.jitter.ms": ("log.roll.jitter.hours",),
    "log.flush.interval.ms": ("log.flush.scheduler.interval.ms",),
}


class Source(IntEnum):
    """Source of a setting, by its code in DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Setting(NamedTuple):
    """One text given to a key in one place."""

    name: str
    text: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Layers:
    """Settings of one broker, by place; each maps key names to texts."""

    file: Mapping[str, str] = field(default_factory=dict)
    """The property file, command line overrides included."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """Dynamic defaults for every broker."""
    broker: Mapping[str, str] = field(default_factory=dict)
    """Dynamic settings of this broker."""


def broker_settings(name: str, layers: Layers) -> list[Setting]:
    """List every setting that bears on a broker key, strongest first; the last is the default."""
    return [
        setting
        for synonym in (name, *_SYNONYMS.get(name, ()))
        for setting in _settings_of_one_name(synonym, layers)
    ]


def topic_settings(name: str, overrides: Mapping[str, str], layers: Layers) -> list[Setting]:
    """List every setting that bears on a topic key, strongest first."""
    settings = []
    if name in overrides:
        settings.append(Setting(name, overrides[name], Source.DYNAMIC_TOPIC))
    broker_keys = TOPIC_KEYS[name].key.broker_keys
    if broker_keys:
        settings += broker_settings(broker_keys[0], layers)
    return settings


def group_settings(name: str, overrides: Mapping[str, str], layers: Layers) -> list[Setting]:
    """List every setting that bears on a group key, strongest first; the last is the default."""
    settings = []
    if name in overrides:
        settings.append(Setting(name, overrides[name], Source.GROUP))
    key = GROUP_KEYS[name].key
    if key.broker_keys:
        return settings + broker_settings(key.broker_keys[0], layers)
    return [*settings, Setting(name, format_value(key.default), Source.DEFAULT)]


def _settings_of_one_name(name: str, layers: Layers) -> list[Setting]:
    places = (
        (layers.broker, Source.DYNAMIC_BROKER),
        (layers.cluster, Source.DYNAMIC_DEFAULT_BROKER),
        (layers.file, Source.STATIC_BROKER),
    )
    settings = [Setting(name, place[name], source) for place, source in places if name in place]
    default = None if name in DYNAMIC_KEYS else format_value(BROKER_KEYS[name].key.default)
    if default is not None:
        settings.append(Setting(name, default, Source.DEFAULT))
    return settings


def unprefixed(name: str) -> str:
    """Name the key that `listener.name.<listener>.[<mechanism>.]<key>` sets for one listener."""
    prefix = "listener.name."
    if not name.startswith(prefix):
        return name
    rest = name.removeprefix(prefix).partition(".")[2]
    return rest if rest in BROKER_KEYS else rest.partition(".")[2]
