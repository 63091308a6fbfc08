"""Every key by its name."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from config.broker import BrokerConfig
from config.groups.group import GroupConfig
from config.key import DYNAMIC_ONLY
from config.topic import TopicConfig

if TYPE_CHECKING:
    from config.key import Key


class NamedKey(NamedTuple):
    """A key, the name users know it by, and the attribute that holds its typed value."""

    name: str
    attribute: str
    key: Key


def _named_keys(table: type) -> dict[str, NamedKey]:
    found: dict[str, NamedKey] = {}
    for field in dataclasses.fields(table):
        key: Key | None = field.metadata.get("key")
        if key is not None:
            name = key.name or field.name.replace("_", ".")
            found[name] = NamedKey(name, field.name, key)
    return found


_ALL_BROKER_KEYS = _named_keys(BrokerConfig)
BROKER_KEYS = {
    name: one for name, one in _ALL_BROKER_KEYS.items() if one.key.scope is not DYNAMIC_ONLY
}
DYNAMIC_KEYS = {
    name: one for name, one in _ALL_BROKER_KEYS.items() if one.key.scope is DYNAMIC_ONLY
}
"""Broker keys that a property file cannot set."""
TOPIC_KEYS = _named_keys(TopicConfig)
GROUP_KEYS = _named_keys(GroupConfig)
