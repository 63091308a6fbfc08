"""A broker's configuration while it runs: dynamic settings on top of those in its file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from config.alteration import validate_broker_config
from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS
from config.checks import problems_together
from config.errors import ConfigError, invalid
from config.key import PER_BROKER
from config.listeners.endpoints import KEYS as LISTENER_KEYS
from config.listeners.endpoints import read_listeners
from config.listeners.listener_config import LIMITS_OF_LISTENERS
from config.precedence import unprefixed
from config.values import parse_value, refuse_repetitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from config.broker import BrokerConfig
    from config.key import Value
    from config.precedence import Layers

TABLE = {**BROKER_KEYS, **DYNAMIC_KEYS}
THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""Counts that may at most double or halve at a time, and not become 0."""

REASON_FOR_RESTART = "it is read when the broker starts; set it in the property file"


def with_dynamic_settings(
    config: BrokerConfig, layers: Layers
) -> tuple[BrokerConfig, list[ConfigError]]:
    """Put dynamic settings on top of a file's; returns the result and the settings left out.

    Left out is a value that its key does not accept, or that contradicts others: it was written to
    the store by other means than the broker. Unknown keys are for plug-ins. `config` is that of the
    file alone.
    """
    problems: list[ConfigError] = []
    for name, text in layers.cluster.items():
        try:
            if _is_of_one_broker(name):
                why = "it is ignored as a default of all brokers: each has to say it"
                raise ConfigError(f"{name}: {why}", name)
            config = _changed(config, name, text)
        except ConfigError as problem:
            problems.append(problem)
    try:
        config = _with_listeners(config, layers.broker)
    except ConfigError as problem:
        problems.append(problem)
    for name in [one for one in layers.broker if one not in LISTENER_KEYS]:
        try:
            config = _changed(config, name, layers.broker[name])
        except ConfigError as problem:
            problems.append(problem)
    return config, problems


def check_dynamic_settings(
    config: BrokerConfig,
    settings: Mapping[str, str],
    *,
    is_cluster_default: bool,
) -> None:
    """Raise ConfigError unless a broker of this configuration can go on with all these settings.

    `settings` are those that are new or other than before. Whether listeners fit together is seen
    only when all of them are known (`with_dynamic_settings`).
    """
    validate_broker_config(settings, is_cluster_default=is_cluster_default)
    _refuse_limits_of_listeners(settings)
    for name, text in settings.items():
        named_key = TABLE.get(unprefixed(name))
        if named_key is None:
            continue
        if not named_key.key.is_changeable:
            raise ConfigError(f"{name} cannot change while the broker runs: {REASON_FOR_RESTART}")
        refuse_repetitions(name, named_key.key, text)
    for name in THREADS:
        if name in settings:
            _check_threads(name, int(settings[name]), config.value_of(name))
    for name, text in settings.items():
        if name not in LISTENER_KEYS:
            config = _changed(config, name, text)


def _with_listeners(config: BrokerConfig, texts: Mapping[str, str]) -> BrokerConfig:
    """Raises ConfigError, of `LISTENER_KEYS`, if these do not fit together with the others."""
    values: dict[str, Value] = {
        TABLE[name].attribute: parse_value(name, TABLE[name].key, texts[name])
        for name in LISTENER_KEYS
        if name in texts
    }
    if not values:
        return config
    changed = dataclasses.replace(config, **values)  # type: ignore[arg-type]
    try:
        read_listeners(changed)
    except ConfigError as problem:
        raise ConfigError(str(problem), *LISTENER_KEYS) from None
    return changed


def _changed(config: BrokerConfig, name: str, text: str) -> BrokerConfig:
    named_key = TABLE.get(name)
    if named_key is None:
        return _changed_for_listener(config, name, text)
    if not named_key.key.is_changeable:
        raise invalid(name, text, REASON_FOR_RESTART)
    value: Value = parse_value(name, named_key.key, text)
    changed = dataclasses.replace(config, **{named_key.attribute: value})  # type: ignore[arg-type]
    for problem in problems_together(changed):
        if name in problem.keys:
            raise problem
    return changed


def _changed_for_listener(config: BrokerConfig, name: str, text: str) -> BrokerConfig:
    """Set a key for one listener: `for_listener` finds it among the file's settings."""
    named_key = BROKER_KEYS.get(unprefixed(name))
    if named_key is None:
        return config
    parse_value(name, named_key.key, text)
    return dataclasses.replace(config, stated={**config.stated, name: text.strip()})


def _is_of_one_broker(name: str) -> bool:
    named_key, base = BROKER_KEYS.get(name), unprefixed(name)
    if base != name:
        return base in BROKER_KEYS and base not in LIMITS_OF_LISTENERS
    return named_key is not None and named_key.key.scope is PER_BROKER


def _refuse_limits_of_listeners(names: Iterable[str]) -> None:
    for name in names:
        base = unprefixed(name)
        if base != name and base in LIMITS_OF_LISTENERS:
            raise ConfigError(f"{name} cannot be set: a listener has no {base} of its own", name)


def _check_threads(name: str, wanted: int, present: Value) -> None:
    assert isinstance(present, int)
    if wanted < 1:
        raise invalid(name, wanted, "there must be at least one")
    if not present // 2 <= wanted <= present * 2:
        raise invalid(name, wanted, f"it can at most double or halve at a time, from {present}")
