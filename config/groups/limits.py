"""Limits of a group's own configuration, and its effective values.

The broker sets bounds. A value outside is refused when it is set; if the bounds change afterwards,
the bound is used in its place, as in Apache Kafka.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from config.catalogue import GROUP_KEYS
from config.errors import ConfigError
from config.values import parse_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.broker import BrokerConfig
    from config.key import Value

logger = logging.getLogger(__name__)


class Bounds(NamedTuple):
    """The broker keys that bound a group key."""

    low: str | None
    high: str | None


def _of(kind: str, what: str) -> Bounds:
    return Bounds(f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")


BOUNDS = {
    **{
        f"{kind}.{what}": _of(kind, what)
        for kind in ("consumer", "share", "streams")
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
    },
    **{
        f"share.{what}": _of("share", what)
        for what in (
            *("record.lock.duration.ms", "delivery.count.limit"),
            "partition.max.record.locks",
        )
    },
    "streams.num.standby.replicas": Bounds(None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": Bounds(None, "group.streams.max.warmup.replicas"),
    "streams.task.offset.interval.ms": Bounds("group.streams.min.task.offset.interval.ms", None),
}
"""By group key."""

DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
RACK_TAGS = "streams.rack.aware.assignment.tags"
STREAMS_ASSIGNOR = "streams.assignor.name"

_LARGER_THAN = {
    f"{kind}.session.timeout.ms": f"{kind}.heartbeat.interval.ms"
    for kind in ("consumer", "share", "streams")
}
"""For each key, a key whose value must be smaller."""


def validate_group_config(overrides: Mapping[str, str], broker: BrokerConfig) -> dict[str, Value]:
    """Turn a group's overrides into typed values by key.

    Raise ConfigError (INVALID_CONFIG) for an unknown key, and for a value that its key does not
    accept, that is outside the broker's bounds or that contradicts another.
    """
    for name in overrides:
        if name not in GROUP_KEYS:
            raise ConfigError(f"Unknown group config name: {name}")
    values = {name: parse_value(name, GROUP_KEYS[name].key, overrides[name]) for name in overrides}
    for name in BOUNDS.keys() & values.keys():
        _check_bounds(name, _number(values[name]), broker)
    for name, smaller in _LARGER_THAN.items():
        if values.keys() & {name, smaller} and not _holds(name, smaller, values, broker):
            raise ConfigError(f"{name} must be greater than {smaller}", name)
    _check_texts(values, broker)
    return values


def _check_bounds(name: str, value: int, broker: BrokerConfig) -> None:
    if value == _nearest(name, value, broker):
        return
    low, high = (None if key is None else broker.value_of(key) for key in BOUNDS[name])
    if low is None:
        reason = f"less than or equal to {high}"
    elif high is None:
        reason = f"greater than or equal to {low}"
    else:
        reason = f"in the range {low} to {high} inclusive."
    raise ConfigError(f"{name} must be {reason}", name)


def _check_texts(values: Mapping[str, Value], broker: BrokerConfig) -> None:
    tags, assignor = values.get(RACK_TAGS, ()), values.get(STREAMS_ASSIGNOR)
    assert isinstance(tags, tuple)
    if len(set(tags)) < len(tags):
        raise ConfigError(f"{RACK_TAGS} must not contain duplicate tag keys.", RACK_TAGS)
    offered = broker.group_streams_assignors
    if assignor is not None and assignor not in offered:
        raise ConfigError(
            f"{STREAMS_ASSIGNOR} '{assignor}' is not a registered task assignor. Registered "
            f"assignors are: [{', '.join(offered)}].",
            STREAMS_ASSIGNOR,
        )
    if str(values.get(DEAD_LETTER_TOPIC, "")).startswith("__"):
        reason = f"{DEAD_LETTER_TOPIC}: DLQ topic name must not start with '__'"
        raise ConfigError(reason, DEAD_LETTER_TOPIC)


def effective_values(
    group_id: str, overrides: Mapping[str, str], broker: BrokerConfig
) -> dict[str, Value]:
    """The values that hold for a group of those that are stored, by key.

    One that is outside the broker's bounds is the bound; one that cannot be read, which only others
    can have stored, is left out. Either is logged.
    """
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        try:
            values[name] = parse_value(name, GROUP_KEYS[name].key, text)
        except (KeyError, ConfigError) as error:
            logger.warning("group %s: configuration key ignored: %s", group_id, error)
            continue
        if name in BOUNDS:
            values[name] = _bounded(group_id, name, _number(values[name]), broker)
    for name, smaller in _LARGER_THAN.items():
        if values.keys() & {name, smaller} and not _holds(name, smaller, values, broker):
            logger.warning("group %s: %s is not greater than %s", group_id, name, smaller)
    return values


def _nearest(name: str, value: int, broker: BrokerConfig) -> int:
    """The value, or the bound that it exceeds."""
    low, high = BOUNDS[name]
    nearest = value if low is None else max(value, _number(broker.value_of(low)))
    return nearest if high is None else min(nearest, _number(broker.value_of(high)))


def _bounded(group_id: str, name: str, value: int, broker: BrokerConfig) -> int:
    bounded = _nearest(name, value, broker)
    if bounded != value:
        logger.warning(
            "group %s: %s is %d, but %d holds: the broker's bounds changed",
            *(group_id, name, value, bounded),
        )
    return bounded


def _holds(name: str, smaller: str, values: Mapping[str, Value], broker: BrokerConfig) -> bool:
    larger_value, smaller_value = (
        values[one] if one in values else broker.value_of(GROUP_KEYS[one].key.broker_keys[0])
        for one in (name, smaller)
    )
    return _number(larger_value) > _number(smaller_value)


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
