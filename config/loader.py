"""Build a `BrokerConfig` from a property file and overrides, with a line about each oddity."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from config import properties
from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS
from config.checks import problems_together
from config.errors import ConfigError
from config.listeners.endpoints import controller_listeners
from config.listeners.listener_config import is_of_listeners
from config.machine.processes import Process, derived_keys, own_key
from config.passwords.providers import NOTHING, PROVIDERS, is_of_provider, read_providers
from config.passwords.secret_files import names_secret_file, readable_by_others, stated_secrets
from config.precedence import unprefixed
from config.values import parse_value, split_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from config.key import Value
    from config.passwords.providers import ConfigProviders

_OVERRIDE = "--override"

_LOGIN_OF_NONE = re.compile(r"(?:listener\.name\.[^.]+\.)?sasl\.jaas\.config")
"""Keys of login modules without the name of a mechanism."""
_WITHOUT_EFFECT = {
    "process.roles": "there is no KRaft; metadata is kept beside the logs (GAPS.md)",
}
"""Remarks on keys whose lack of effect a user must not miss."""


class _Statement(NamedTuple):
    """A key, its text, and where that was written."""

    name: str
    text: str
    place: str
    number: int
    """Counts statements in the order they were written, overrides last."""


class _Remark(NamedTuple):
    """A remark on a statement; remarks sort in the order of statements."""

    number: int
    text: str
    is_fatal: bool = False


def load_broker_config(
    path: str | Path,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] = NOTHING,
    process: Process | None = None,
) -> tuple[BrokerConfig, list[str]]:
    """Read a property file and put `key=value` overrides on top.

    `environment` holds the variables for `config.providers`; `process` is one of several brokers of
    the file (`config.machine.processes`), None the whole file. Return the configuration and the
    warnings about it, each a line that begins with file and line number. Raise ConfigError when a
    value cannot be used, with a line for each such value, and for each warning.
    """
    statements = list(_read(Path(path), overrides))
    remarks = list(_repetitions(statements))
    if process is not None:
        whole, _ = load_broker_config(path, overrides, environment)
        statements = list(_of_process(statements, whole, process))
    written = {statement.name: statement for statement in statements}
    remarks += _warnings(written.values())
    providers = read_providers({name: one.text for name, one in written.items()}, environment)
    effective, unresolved = _resolved(written, providers)
    remarks += unresolved
    remarks += _about_secrets(Path(path), written, effective, providers)
    values: dict[str, Value] = {}
    malformed = set()
    for statement in effective.values():
        if statement.name in BROKER_KEYS:
            _, attribute, key = BROKER_KEYS[statement.name]
            try:
                values[attribute] = parse_value(statement.name, key, statement.text)
            except ConfigError as problem:
                remarks.append(_remark(statement, str(problem), is_fatal=True))
                malformed.add(statement.name)
    config = _build(values, effective, providers)
    remarks += [
        _about_keys(problem, effective)
        for problem in problems_together(config)
        if malformed.isdisjoint(problem.keys)
    ]
    remarks += _left_out(config, effective)
    remarks.sort()
    if any(remark.is_fatal for remark in remarks):
        raise ConfigError("\n".join(map(_line, remarks)))
    return config, [remark.text for remark in remarks]


def _read(path: Path, overrides: Sequence[str]) -> Iterable[_Statement]:
    entries = _read_file(path)
    for number, entry in enumerate(entries):
        yield _Statement(entry.name, entry.value, f"{path}:{entry.line}", number)
    for number, text in enumerate(overrides, start=len(entries)):
        name, has_value, value = text.partition("=")
        if not has_value or not name.strip():
            raise ConfigError(f"--override {text}: expected KEY=VALUE")
        yield _Statement(name.strip(), value, _OVERRIDE, number)


def _of_process(
    statements: Sequence[_Statement], whole: BrokerConfig, process: Process
) -> Iterator[_Statement]:
    """Yield the statements of one process: common ones, derived ones, and its own."""
    for_all = [one for one in statements if own_key(one.name) is None]
    yield from for_all
    stated = {one.name: one for one in for_all}
    try:
        derived = derived_keys(whole, process)
    except ConfigError as problem:
        raise ConfigError(_about_keys(problem, stated).text, *problem.keys) from None
    for name, text in derived.items():
        place = f"process {process.number}"
        if name in stated:
            place = f"{stated[name].place} ({place})"
        yield _Statement(name, text, place, len(statements))
    for one in statements:
        own = own_key(one.name)
        if own is not None and own[0] == process.number:
            yield one._replace(name=own[1])


def _read_file(path: Path) -> list[properties.Property]:
    try:
        return properties.parse(path.read_text(encoding=properties.ENCODING))
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    except properties.MalformedFileError as problem:
        raise ConfigError(f"{path}:{problem.line}: {problem.why}") from None


def _remark(statement: _Statement, text: str, *, is_fatal: bool = False) -> _Remark:
    return _Remark(statement.number, f"{statement.place}: {text}", is_fatal)


def _resolved(
    written: Mapping[str, _Statement], providers: ConfigProviders
) -> tuple[dict[str, _Statement], list[_Remark]]:
    """Return the statements with variables resolved, and remarks on those that cannot be."""
    effective, remarks = {}, []
    for name, statement in written.items():
        text = statement.text
        try:
            text = providers.resolve(text)
        except ConfigError as problem:
            remarks.append(_remark(statement, f"{name}: {problem}", is_fatal=True))
        for variable in providers.unresolved:
            where = f"{variable.path}:" if variable.path else ""
            shown = f"${{{variable.provider}:{where}{variable.key}}}"
            remarks.append(_remark(statement, f"{name}: nothing is found for {shown}"))
        providers.unresolved.clear()
        effective[name] = statement._replace(text=text)
    return effective, remarks


def _about_secrets(
    path: Path,
    written: Mapping[str, _Statement],
    effective: Mapping[str, _Statement],
    providers: ConfigProviders,
) -> Iterable[_Remark]:
    """Warn of files with secrets that every user of the machine may read."""
    files = {*providers.files}
    files |= {Path(one.text.strip()) for name, one in effective.items() if names_secret_file(name)}
    own = {n: one.text for n, one in written.items() if one.place != _OVERRIDE}
    if any(effective[name].text == own[name] for name in stated_secrets(own)):
        files.add(path)
    for file in readable_by_others(files):
        yield _Remark(len(effective), f"{file}: every user may read this file, and it has secrets")


def _repetitions(statements: Sequence[_Statement]) -> Iterable[_Remark]:
    """Warn of keys the file gives more than once; overriding one is nothing to warn of."""
    seen: dict[str, _Statement] = {}
    for statement in statements:
        earlier = seen.get(statement.name)
        if earlier is not None and statement.place != _OVERRIDE:
            yield _remark(statement, f"{statement.name} replaces {earlier.place}")
        seen[statement.name] = statement


def _warnings(statements: Iterable[_Statement]) -> Iterable[_Remark]:
    for statement in statements:
        warning = _warning(statement)
        if warning is not None:
            yield _remark(statement, warning)


def _warning(statement: _Statement) -> str | None:
    own = own_key(statement.name)
    if own is not None:
        return _warning(statement._replace(name=own[1]))
    if _LOGIN_OF_NONE.fullmatch(statement.name):
        wanted = "listener.name.<listener>.<mechanism>.sasl.jaas.config"
        return f"{statement.name} is ignored: a broker's login module stands in {wanted}"
    known = BROKER_KEYS.get(statement.name)
    if known is not None:
        return None if known.key.acts else _without_effect(known.name)
    if is_of_provider(statement.name):
        return None
    of_listener = BROKER_KEYS.get(unprefixed(statement.name))
    if of_listener is not None:
        has_effect = of_listener.key.acts and is_of_listeners(of_listener.name)
        return None if has_effect else _without_effect(statement.name)
    return about_unknown_key(statement.name)


def about_unknown_key(name: str) -> str | None:
    """Return the remark on a key of no broker, listener or provider; None for a known key."""
    own = own_key(name)
    if own is not None:
        return about_unknown_key(own[1])
    if name in BROKER_KEYS or unprefixed(name) in BROKER_KEYS or is_of_provider(name):
        return None
    if not name:
        return "there is no key in front of the value, which has no effect"
    return f"{name} is not a configuration key{_suggestion(name)}"


def _without_effect(name: str) -> str:
    why = _WITHOUT_EFFECT.get(name)
    return f"{name} has no effect in this broker" + (f": {why}" if why else "")


def _suggestion(name: str) -> str:
    import difflib  # noqa: PLC0415  # only a user who mistyped waits for it

    close = difflib.get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _build(
    values: dict[str, Value], effective: dict[str, _Statement], providers: ConfigProviders
) -> BrokerConfig:
    stated = {name: statement.text for name, statement in effective.items()}
    places = {name: statement.place for name, statement in effective.items()}
    config = BrokerConfig(stated=stated, places=places, providers=providers, **values)
    if not config.log_dirs:
        config = dataclasses.replace(config, log_dirs=split_list(config.log_dir))
    if "node.id" in stated and "broker.id" not in stated:
        config = dataclasses.replace(config, broker_id=config.node_id)
    return config


def _about_keys(problem: ConfigError, effective: Mapping[str, _Statement]) -> _Remark:
    """Put a place in front of a problem with several keys together, if one of them has one."""
    stated = [effective[key] for key in problem.keys if key in effective]
    if stated:
        return _remark(stated[0], str(problem), is_fatal=True)
    return _Remark(len(effective), str(problem), is_fatal=True)


def _left_out(config: BrokerConfig, effective: Mapping[str, _Statement]) -> Iterable[_Remark]:
    for name in config.config_providers:
        if f"{PROVIDERS}.{name}.class" not in effective:
            text = f"{name} provides nothing: {PROVIDERS}.{name}.class is not set"
            yield _remark(effective[PROVIDERS], f"{PROVIDERS}: {text}")
    for name, statement in effective.items():
        own = own_key(name)
        if own is not None and own[0] >= config.broker_processes:
            text = f"{name} is ignored: the last process is {config.broker_processes - 1}"
            yield _remark(statement, text)
    for name in controller_listeners(config):
        yield _remark(
            effective["controller.listener.names"],
            f"listener {name} is not opened: KRaft controllers are not supported (GAPS.md)",
        )


def _line(remark: _Remark) -> str:
    """Write a remark among others that end the start."""
    place, colon, text = remark.text.partition(": ")
    return remark.text if remark.is_fatal else f"{place}{colon}warning: {text}"
