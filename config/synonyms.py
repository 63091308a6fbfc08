"""Defaults of topic keys from broker keys.

A topic key names its broker keys strongest first: `retention.ms` takes `log.retention.ms`, else
`log.retention.minutes`, else `log.retention.hours`. The unit is in the broker key's name.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from config.topic import TopicConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.key import Key, Value

_DEFAULT = TopicConfig()
_MILLISECONDS_IN = {"minutes": 60_000, "hours": 3_600_000}


def in_milliseconds(broker_key: str, value: Value) -> Value:
    """Bring a broker key's value to its topic key's unit; negative numbers mean no limit."""
    factor = _MILLISECONDS_IN.get(broker_key.rpartition(".")[2])
    if factor is None or not isinstance(value, int):
        return value
    return max(value * factor, -1)


def text_in_milliseconds(broker_key: str, text: str) -> str:
    """As `in_milliseconds`, for a value as it is shown."""
    is_number = broker_key.rpartition(".")[2] in _MILLISECONDS_IN
    return str(in_milliseconds(broker_key, int(text))) if is_number else text


def topic_defaults(value_of: Callable[[str], Value]) -> TopicConfig:
    """Build the configuration of a topic that overrides nothing, from the broker keys' values."""
    values: dict[str, Value] = {}
    for field in dataclasses.fields(TopicConfig):
        key: Key = field.metadata["key"]
        for name in key.broker_keys:
            value = value_of(name)
            if value is not None:
                values[field.name] = in_milliseconds(name, value)
                break
    return with_older_timestamp_limit(TopicConfig(**values))  # type: ignore[arg-type]  # by its row


def with_older_timestamp_limit(config: TopicConfig) -> TopicConfig:
    """Use `message.timestamp.difference.max.ms` in place of its unset successors (KIP-937)."""
    limit = config.message_timestamp_difference_max_ms
    unset = _DEFAULT.message_timestamp_before_max_ms
    if limit == unset:
        return config
    before, after = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    return dataclasses.replace(
        config,
        message_timestamp_before_max_ms=limit if before == unset else before,
        message_timestamp_after_max_ms=(
            limit if after == _DEFAULT.message_timestamp_after_max_ms else after
        ),
    )
