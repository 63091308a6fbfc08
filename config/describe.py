"""Entries of DescribeConfigs for topics, groups and brokers.

As Apache Kafka 4.3: a value is shown in normal form (`normal_text`), and so is a topic's or group's
own setting among the synonyms; settings of brokers, and defaults of all brokers, are shown as
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile
from typing import TYPE_CHECKING

from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS, GROUP_KEYS, TOPIC_KEYS, NamedKey
from config.documentation.docstrings import (
    document_broker_key,
    document_group_key,
    document_topic_key,
)
from config.precedence import (
    Setting,
    Source,
    broker_settings,
    group_settings,
    topic_settings,
    unprefixed,
)
from config.synonyms import text_in_milliseconds
from config.values import format_value, normal_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from config.precedence import Layers

Places = tuple[tuple["Mapping[str, str]", Source], ...]
"""Settings by their source, strongest first."""

LISTENERS = "listener.name."


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key of one resource, in the terms of DescribeConfigs."""

    named_key: NamedKey | None
    """None for an unknown key that was set."""
    name: str
    value: str | None
    """Effective value; None when there is no value, or when it must not be shown."""
    source: Source
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[Setting, ...]
    """Every setting that bears on it, strongest first; texts of sensitive keys are None."""

    @property
    def is_default(self) -> bool:
        """True for a default: version 0 of DescribeConfigs has this instead of a source."""
        return self.source is Source.DEFAULT

    @property
    def type_code(self) -> int:
        """The type by its code in DescribeConfigs; 0 when unknown."""
        return 0 if self.named_key is None else int(self.named_key.key.type)

    @property
    def documentation(self) -> str | None:
        """Documentation of the key; None for an unknown key, or one of a single listener."""
        if self.named_key is None or self.named_key.name != self.name:
            return None
        attribute = self.named_key.attribute
        if TOPIC_KEYS.get(self.name) is self.named_key:
            return document_topic_key(attribute)
        is_group_key = GROUP_KEYS.get(self.name) is self.named_key
        return (document_group_key if is_group_key else document_broker_key)(attribute)


def describe_topic(
    overrides: Mapping[str, str], layers: Layers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe every topic key, or the requested ones, of a topic with overrides."""
    return [
        _describe_topic_key(named_key, topic_settings(named_key.name, overrides, layers))
        for named_key in _asked_for(TOPIC_KEYS, names)
    ]


def describe_group(
    overrides: Mapping[str, str], layers: Layers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe every group key, or the requested ones, of a group with overrides."""
    return [
        _describe_group_key(named_key, group_settings(named_key.name, overrides, layers))
        for named_key in _asked_for(GROUP_KEYS, names)
    ]


def describe_broker(layers: Layers, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """Describe every broker key, or the requested ones, and other settings."""
    known = [
        _describe_broker_key(named_key, broker_settings(named_key.name, layers))
        for named_key in _asked_for(BROKER_KEYS, names)
    ]
    return known + _describe_dynamic_only(layers, names) + _describe_others(layers, names)


def describe_cluster_default(
    layers: Layers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """Describe the defaults of all brokers, or the requested ones."""
    places = ((layers.cluster, Source.DYNAMIC_DEFAULT_BROKER),)
    return [
        _describe_default(name, text) or _describe_other(name, places)
        for name, text in layers.cluster.items()
        if names is None or name in names
    ]


def _describe_default(name: str, text: str) -> ConfigEntry | None:
    named_key = BROKER_KEYS.get(name) or DYNAMIC_KEYS.get(name)
    if named_key is None:
        return None
    shown = None if named_key.key.is_sensitive else text
    return ConfigEntry(
        named_key=named_key,
        name=name,
        value=shown,
        source=Source.DYNAMIC_DEFAULT_BROKER,
        is_read_only=not named_key.key.is_changeable,
        is_sensitive=named_key.key.is_sensitive,
        synonyms=(Setting(name, shown, Source.DYNAMIC_DEFAULT_BROKER),),
    )


def _asked_for(table: Mapping[str, NamedKey], names: Collection[str] | None) -> Iterable[NamedKey]:
    return (
        named_key
        for named_key in table.values()
        if (not named_key.key.internal if names is None else named_key.name in names)
    )


def _describe_topic_key(named_key: NamedKey, settings: list[Setting]) -> ConfigEntry:
    settings = _with_own_normal(named_key, settings, Source.DYNAMIC_TOPIC)
    synonyms = _from_own_name(settings, next(iter(named_key.key.broker_keys), None))
    return ConfigEntry(
        named_key=named_key,
        name=named_key.name,
        value=_strongest(settings) if settings else format_value(named_key.key.default),
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        is_read_only=False,
        is_sensitive=False,
        synonyms=synonyms,
    )


def _describe_group_key(named_key: NamedKey, settings: list[Setting]) -> ConfigEntry:
    settings = _with_own_normal(named_key, settings, Source.GROUP)
    return ConfigEntry(
        named_key=named_key,
        name=named_key.name,
        value=_strongest(settings),
        source=settings[0].source,
        is_read_only=False,
        is_sensitive=False,
        synonyms=tuple(settings),
    )


def _with_own_normal(named_key: NamedKey, settings: list[Setting], own: Source) -> list[Setting]:
    """Replace the topic's or group's own setting by its normal form."""
    return [
        setting._replace(text=_normal(named_key, setting)) if setting.source is own else setting
        for setting in settings
    ]


def _strongest(settings: list[Setting]) -> str | None:
    """The value that holds; of a broker key, in the unit of topics and groups."""
    setting = settings[0]
    if setting.source in (Source.DYNAMIC_TOPIC, Source.GROUP) or setting.name not in BROKER_KEYS:
        return setting.text
    text = _normal(BROKER_KEYS[setting.name], setting)
    return text if text is None else text_in_milliseconds(setting.name, text)


def _normal(named_key: NamedKey, setting: Setting) -> str | None:
    if setting.text is None or setting.source is Source.DEFAULT:  # written by `format_value`
        return setting.text
    return normal_text(named_key.name, named_key.key, setting.text)


def _describe_broker_key(named_key: NamedKey, settings: list[Setting]) -> ConfigEntry:
    # A synonym in another unit bears on the key, but its number is not this key's value.
    own = [setting for setting in settings if setting.name == named_key.name]
    synonyms = _from_own_name(settings, named_key.name)
    is_sensitive = named_key.key.is_sensitive
    return ConfigEntry(
        named_key=named_key,
        name=named_key.name,
        value=_normal(named_key, own[0]) if own and not is_sensitive else None,
        source=own[0].source if own else Source.DEFAULT,
        is_read_only=not named_key.key.is_changeable,
        is_sensitive=is_sensitive,
        synonyms=_hidden(synonyms) if is_sensitive else synonyms,
    )


def _describe_dynamic_only(layers: Layers, names: Collection[str] | None) -> list[ConfigEntry]:
    """Describe the keys that no file has, where they are set."""
    described = (
        _describe_broker_key(named_key, broker_settings(named_key.name, layers))
        for named_key in DYNAMIC_KEYS.values()
        if names is None or named_key.name in names
    )
    return [entry for entry in described if entry.synonyms]


def _describe_others(layers: Layers, names: Collection[str] | None) -> list[ConfigEntry]:
    """Describe settings outside the tables: keys of one listener, and unknown ones."""
    found = {
        name: None
        for place, _ in _places(layers)
        for name in place
        if not (name in BROKER_KEYS or name in DYNAMIC_KEYS) and (names is None or name in names)
    }
    return [_describe_other(name, _places(layers)) for name in found]


def _describe_other(name: str, places: Places) -> ConfigEntry:
    """Describe a key by its listener's prefix, or as a secret: plug-ins may have passwords."""
    base = BROKER_KEYS.get(unprefixed(name))
    of_all = base.name if base is not None else name.partition(LISTENERS)[2].partition(".")[2]
    settings = [
        Setting(one, place[one], source)
        for place, source in places
        for one in (name, of_all)
        if one in place
    ]
    default = None if base is None else format_value(base.key.default)
    if base is not None and default is not None and len(places) > 1:
        settings.append(Setting(base.name, default, Source.DEFAULT))
    synonyms = _from_own_name(settings, name)
    is_sensitive = base is None or base.key.is_sensitive
    return ConfigEntry(
        named_key=base,
        name=name,
        value=None if is_sensitive else synonyms[0].text,
        source=synonyms[0].source,
        is_read_only=True,
        is_sensitive=is_sensitive,
        synonyms=_hidden(synonyms) if is_sensitive else synonyms,
    )


def _places(layers: Layers) -> Places:
    return (
        (layers.broker, Source.DYNAMIC_BROKER),
        (layers.cluster, Source.DYNAMIC_DEFAULT_BROKER),
        (layers.file, Source.STATIC_BROKER),
    )


def _from_own_name(settings: list[Setting], name: str | None) -> tuple[Setting, ...]:
    """Leave out the entries before a broker key's first setting by its own name, as Apache does.

    So a key that is set only by a synonym, in larger units, has a value and shows no settings.
    """
    own = [setting for setting in settings if setting.source is Source.DYNAMIC_TOPIC]
    rest = settings[len(own) :]
    return (*own, *dropwhile(lambda setting: setting.name != name, rest))


def _hidden(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    return tuple(setting._replace(text=None) for setting in settings)
