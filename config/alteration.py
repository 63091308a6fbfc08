"""Check and apply the changes of CreateTopics, AlterConfigs and IncrementalAlterConfigs.

Everything here takes and gives mappings of key names to texts, the form in the metadata store;
`topic_config` turns them into typed values.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING

from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS, GROUP_KEYS, TOPIC_KEYS
from config.errors import ConfigError
from config.key import PER_BROKER, READ_ONLY, Type, Value
from config.listeners.listener_config import LIMITS_OF_LISTENERS, STORE_KEYS
from config.precedence import unprefixed
from config.synonyms import with_older_timestamp_limit
from config.values import format_value, parse_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from config.catalogue import NamedKey
    from config.topic import TopicConfig


LONGEST_VALUE_BYTES = 32_767
"""Length limit of a string in the protocol: a longer value could be set but never described."""


class Operation(IntEnum):
    """Operation of IncrementalAlterConfigs on a key, by its code in the request."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterationError(ConfigError):
    """The request itself is invalid (INVALID_REQUEST), regardless of the keys."""


def validate_topic_config(
    overrides: Mapping[str, str | None], defaults: TopicConfig
) -> dict[str, Value]:
    """Turn a topic's overrides into typed values by attribute name.

    Raise ConfigError (INVALID_CONFIG) for an unknown key, a value its key does not accept, or two
    that contradict each other.
    """
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        if name not in TOPIC_KEYS:
            raise ConfigError(f"Unknown topic config name: {name}")
        if text is None:
            raise ConfigError(f"Null value not supported for topic configs: {name}")
        _, attribute, key = TOPIC_KEYS[name]
        values[attribute] = parse_value(name, key, text)
    config = _with(defaults, values)
    _check_compaction_lags(config)
    _check_delays(config)
    if config.remote_storage_enable:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
            "remote.storage.enable",
        )
    return values


def topic_config(overrides: Mapping[str, str], defaults: TopicConfig) -> TopicConfig:
    """Build a topic's configuration from its overrides and the broker's defaults."""
    config = _with(defaults, validate_topic_config(overrides, defaults))
    return with_older_timestamp_limit(config)


def validate_broker_config(changes: Mapping[str, str], *, is_cluster_default: bool) -> None:
    """Refuse dynamic broker settings that cannot be, as a whole.

    Raise AlterationError for keys that only the property file sets, that have to name a listener,
    or that the cluster cannot have a default for; ConfigError for a value its key does not accept.
    Unknown keys pass: a plug-in may know them.
    """
    table = {**BROKER_KEYS, **DYNAMIC_KEYS}
    plain = {name: unprefixed(name) for name in changes}
    known = {name: table[key] for name, key in plain.items() if key in table}
    own = {name: named_key for name, named_key in known.items() if name in table}
    fixed = [name for name, named_key in own.items() if named_key.key.scope is READ_ONLY]
    if fixed:
        raise AlterationError(f"Cannot update these configs dynamically: Set({', '.join(fixed)})")
    stores = [name for name in own if name in STORE_KEYS]
    if stores:
        raise AlterationError(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: Set({', '.join(stores)})"
        )
    for name, named_key in known.items():
        parse_value(name, named_key.key, changes[name])
    single = [name for name, named_key in own.items() if named_key.key.scope is PER_BROKER]
    single += [name for name in known.keys() - own.keys() if plain[name] not in LIMITS_OF_LISTENERS]
    if single and is_cluster_default:
        raise AlterationError(
            "Cannot update these configs at default cluster level, "
            f"broker id must be specified: Set({', '.join(sorted(single))})"
        )


def alter_incrementally(
    current: Mapping[str, str],
    changes: Iterable[tuple[str, Operation, str | None]],
    table: Mapping[str, NamedKey],
) -> dict[str, str]:
    """Apply the operations of one IncrementalAlterConfigs resource to the current settings.

    Nothing is validated but the operations themselves: a list operation on another type of key, a
    repeated key, a missing value and a list that becomes too long raise ConfigError.
    """
    changes = list(changes)
    _refuse_repetitions([name for name, _, _ in changes])
    _refuse_missing_values(changes)
    altered = dict(current)
    for name, operation, text in changes:
        if operation is Operation.DELETE:
            altered.pop(name, None)
        elif operation is Operation.SET:
            altered[name] = text or ""
        else:
            value = _altered_list(name, operation, text or "", altered.get(name), table)
            if len(value.encode()) > LONGEST_VALUE_BYTES:
                raise ConfigError(
                    "The configuration value cannot be added because it exceeds the maximum "
                    f"value size of {LONGEST_VALUE_BYTES} bytes.",
                    name,
                )
            altered[name] = value
    return altered


def _with(defaults: TopicConfig, values: Mapping[str, Value]) -> TopicConfig:
    return dataclasses.replace(defaults, **values)  # type: ignore[arg-type]  # parsed by its row


def _check_compaction_lags(config: TopicConfig) -> None:
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({low})"
            f" > max.compaction.lag.ms ({high})"
        )


def _check_delays(config: TopicConfig) -> None:
    if not (config.delivery_delay_enable or config.is_retry_topic):
        return
    if config.is_retry_topic and "compact" in config.cleanup_policy:
        raise ConfigError(
            "conflict topic config setting cleanup.policy=compact and a retry.policy: "
            "a record would be lost to the next one with its key before it is tried again"
        )
    default, most = config.delivery_delay_ms, config.delivery_delay_max_ms
    if default > most:
        raise ConfigError(
            f"conflict topic config setting delivery.delay.ms ({default})"
            f" > delivery.delay.max.ms ({most})"
        )


def _refuse_repetitions(names: list[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise AlterationError(f"Error due to duplicate config keys : {','.join(repeated)}")


def _refuse_missing_values(changes: list[tuple[str, Operation, str | None]]) -> None:
    missing = [
        name for name, operation, text in changes if text is None and operation != Operation.DELETE
    ]
    if missing:
        raise AlterationError(f"Null value not supported for : {','.join(missing)}")


def _altered_list(
    name: str, operation: Operation, text: str, current: str | None, table: Mapping[str, NamedKey]
) -> str:
    if name not in table:
        kind = "topic" if table is TOPIC_KEYS else "group" if table is GROUP_KEYS else "broker"
        raise ConfigError(f"Unknown {kind} config name: {name}")
    key = table[name].key
    if key.type is not Type.LIST:
        verb = operation.name.lower()
        raise ConfigError(f"Config value {verb} is not allowed for config key: {name}")
    elements = _elements(current if current is not None else format_value(key.default) or "")
    given = _elements(text)
    if operation is Operation.APPEND:
        return ",".join([*elements, *_without(given, elements)])
    return ",".join(_without(elements, given))


def _without(elements: Iterable[str], excluded: Iterable[str]) -> list[str]:
    """Elements that are none of the excluded, in their order."""
    known = set(excluded)
    return [element for element in elements if element not in known]


def _elements(text: str) -> list[str]:
    return [element.strip() for element in text.split(",") if element.strip()]
