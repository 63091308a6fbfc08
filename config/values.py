"""Between a key's text and its typed value, by Apache Kafka's rules and with its messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from config.errors import invalid
from config.key import Key, Type, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_COMMA = re.compile(r"\s*,\s*")
_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}


def parse_value(name: str, key: Key, text: str) -> Value:
    """Turn text into the key's typed value; raise ConfigError when it is none or out of range."""
    try:
        value = _PARSERS[key.type](text.strip(), key)
    except ValueError as problem:
        raise invalid(name, text, str(problem)) from None
    check_value(name, key, value)
    return value


def check_value(name: str, key: Key, value: Value) -> None:
    """Hold a typed value against the key's rule; raise ConfigError when it breaks it."""
    if key.rule is not None and value is not None:
        key.rule.check(name, value)


def format_value(value: Value) -> str | None:
    """Write a typed value the way Apache Kafka does; None stays None."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case int():
            return str(value)
        case frozenset():
            return ",".join(sorted(value))
        case tuple():
            return ",".join(value)


def _java_double(value: float) -> str:
    mantissa, has_exponent, exponent = repr(value).partition("e")
    if not has_exponent:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _boolean(text: str, _: Key) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("Expected value to be either true or false")
    return text.lower() == "true"


def _integer(text: str, key: Key) -> int:
    limit = 1 << (_BITS[key.type] - 1)
    if not _INTEGER.fullmatch(text) or not -limit <= int(text) < limit:
        raise ValueError(f"Not a number of type {key.type.name}")
    return int(text)


def _double(text: str, key: Key) -> float:
    if not _DOUBLE.fullmatch(text):
        raise ValueError(f"Not a number of type {key.type.name}")
    return float(text.rstrip("fFdD"))


def _list(text: str, key: Key) -> tuple[str, ...] | frozenset[str]:
    elements = _COMMA.split(text) if text else []
    return frozenset(elements) if isinstance(key.default, frozenset) else tuple(elements)


def _string(text: str, _: Key) -> str:
    return text


_PARSERS: dict[Type, Callable[[str, Key], Value]] = {
    Type.BOOLEAN: _boolean,
    Type.SHORT: _integer,
    Type.INT: _integer,
    Type.LONG: _integer,
    Type.DOUBLE: _double,
    Type.LIST: _list,
    Type.STRING: _string,
    Type.CLASS: _string,
    Type.PASSWORD: _string,
}
