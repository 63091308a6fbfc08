"""A configuration as if it were read of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS
from config.values import parse_value

if TYPE_CHECKING:
    from collections.abc import Mapping


def stated(properties: Mapping[str, str]) -> BrokerConfig:
    """Return a configuration with those properties, checked one by one and not together."""
    values: dict[str, Any] = {}
    for name, text in properties.items():
        if name in BROKER_KEYS:
            known = BROKER_KEYS[name]
            values[known.attribute] = parse_value(name, known.key, text)
    return BrokerConfig(**values, stated=dict(properties))
