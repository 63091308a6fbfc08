"""From a property file and overrides to a `BrokerConfig`, with a line about everything odd."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from config import properties
from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS
from config.checks import check_together
from config.errors import ConfigError
from config.precedence import unprefixed
from config.values import parse_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from config.key import Value


_WITHOUT_EFFECT = {
    "zookeeper.connect": "ZooKeeper is not served yet: metadata is kept beside the logs (GAPS.md)",
}
"""What to say of keys whose lack of effect a user must not miss."""


class _Statement(NamedTuple):
    """A key, its text, and where that was written."""

    name: str
    text: str
    place: str


def load_broker_config(
    path: str | Path, overrides: Sequence[str] = ()
) -> tuple[BrokerConfig, list[str]]:
    """Read a property file and put `key=value` overrides on top.

    Return the configuration and the warnings about it, each a line that begins with file and line
    number. Raise ConfigError, with one such line per problem, when a value cannot be used.
    """
    statements = [*_read_file(Path(path)), *map(_read_override, overrides)]
    warnings = _repetitions(statements)
    problems: list[str] = []
    values: dict[str, Value] = {}
    effective = {statement.name: statement for statement in statements}
    for statement in effective.values():
        warning = _warning(statement)
        if warning is not None:
            warnings.append(f"{statement.place}: {warning}")
        if statement.name in BROKER_KEYS:
            _, attribute, key = BROKER_KEYS[statement.name]
            try:
                values[attribute] = parse_value(statement.name, key, statement.text)
            except ConfigError as problem:
                problems.append(f"{statement.place}: {problem}")
    if problems:
        raise ConfigError("\n".join(problems))
    config = _build(values, effective)
    _check(config, effective)
    return config, warnings


def _read_file(path: Path) -> Iterable[_Statement]:
    try:
        text = path.read_text(encoding=properties.ENCODING)
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    try:
        entries = properties.parse(text)
    except ConfigError as problem:
        raise ConfigError(f"{path}: {problem}") from None
    return [_Statement(entry.name, entry.value, f"{path}:{entry.line}") for entry in entries]


def _read_override(text: str) -> _Statement:
    name, has_value, value = text.partition("=")
    if not has_value or not name.strip():
        raise ConfigError(f"--override {text}: an override is written key=value")
    return _Statement(name.strip(), value, "--override")


def _repetitions(statements: Sequence[_Statement]) -> list[str]:
    """Warn of keys the file gives more than once; overriding one is nothing to warn of."""
    warnings = []
    seen: dict[str, _Statement] = {}
    for statement in statements:
        earlier = seen.get(statement.name)
        if earlier is not None and statement.place != "--override":
            warnings.append(f"{statement.place}: {statement.name} replaces {earlier.place}")
        seen[statement.name] = statement
    return warnings


def _warning(statement: _Statement) -> str | None:
    known = BROKER_KEYS.get(statement.name)
    if known is not None:
        return None if known.key.acts else _without_effect(known.name)
    if unprefixed(statement.name) in BROKER_KEYS:
        return f"{statement.name} has no effect in this broker: no key of a single listener has"
    return f"{statement.name} is not a configuration key{_suggestion(statement.name)}"


def _without_effect(name: str) -> str:
    why = _WITHOUT_EFFECT.get(name)
    return f"{name} has no effect in this broker" + (f": {why}" if why else "")


def _suggestion(name: str) -> str:
    import difflib  # noqa: PLC0415  # only a user who mistyped waits for it

    close = difflib.get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _build(values: dict[str, Value], effective: dict[str, _Statement]) -> BrokerConfig:
    stated = {name: statement.text.strip() for name, statement in effective.items()}
    config = BrokerConfig(stated=stated, **values)  # type: ignore[arg-type]  # parsed by its row
    if not config.log_dirs:
        config = dataclasses.replace(config, log_dirs=(config.log_dir,))
    if "node.id" in stated and "broker.id" not in stated:
        config = dataclasses.replace(config, broker_id=config.node_id)
    return config


def _check(config: BrokerConfig, effective: dict[str, _Statement]) -> None:
    """Put a place in front of what is wrong with several keys together, if one of them has one."""
    try:
        check_together(config)
    except ConfigError as problem:
        named = re.findall(r"[a-z]+(?:\.[a-zA-Z]+)+", str(problem))
        places = [effective[name].place for name in named if name in effective]
        raise ConfigError(f"{places[0]}: {problem}" if places else str(problem)) from None
