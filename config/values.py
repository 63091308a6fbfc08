"""Between a key's text and its typed value, by Apache Kafka's rules and with its messages."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from config.errors import ConfigError, invalid
from config.key import Key, Type, Value
from config.rules import ThrottledReplicas

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that Java's `String.trim` strips: no-break spaces stay, control characters go."""
_PLAIN_DOUBLES = (1e-3, 1e7)
"""Java writes a double without an exponent from the first up to the second."""


def parse_value(name: str, key: Key, text: str) -> Value:
    """Turn text into the key's typed value; raise ConfigError when it is none or out of range."""
    try:
        value = _PARSERS[key.type](text.strip(_BLANKS), key)
    except ValueError as problem:
        raise invalid(name, text, str(problem)) from None
    if isinstance(value, tuple | frozenset) and not isinstance(key.rule, ThrottledReplicas):
        _refuse_empty_elements(name, value)
    check_value(name, key, value)
    return value


def check_value(name: str, key: Key, value: Value) -> None:
    """Hold a typed value against the key's rule; raise ConfigError when it breaks it."""
    if key.rule is not None and value is not None:
        key.rule.check(name, value)


def _refuse_empty_elements(name: str, elements: Collection[str]) -> None:
    if "" in elements:
        raise ConfigError(f"Configuration '{name}' values must not be empty.", name)


def refuse_repetitions(name: str, key: Key, text: str) -> None:
    """Raise ConfigError if a list names an element twice."""
    elements = split_list(text.strip(_BLANKS)) if key.type is Type.LIST else ()
    if len(set(elements)) < len(elements):
        raise ConfigError(f"Configuration '{name}' values must not be duplicated.", name)


def normal_text(name: str, key: Key, text: str) -> str:
    """Format a text as DescribeConfigs shows it: `TRUE` is true, `a , b` is a,b.

    An invalid value of the key stays unchanged: it may be another broker's.
    """
    try:
        value = parse_value(name, key, text)
    except ConfigError:
        return text
    if key.type is not Type.LIST:
        return format_value(value) or ""
    elements = split_list(text.strip(_BLANKS))
    if not isinstance(key.rule, ThrottledReplicas):  # the one list that may have repetitions
        elements = tuple(dict.fromkeys(elements))
    return ",".join(elements)


def split_list(text: str) -> tuple[str, ...]:
    """The elements of a list, which has none if the text is empty."""
    return tuple(_COMMA.split(text)) if text else ()


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
    low, high = _PLAIN_DOUBLES
    if value == 0 or low <= abs(value) < high:
        return repr(value)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(repr(value)).normalize()
    first, *others = map(str, shortest.as_tuple().digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{first}.{''.join(others) or '0'}E{shortest.adjusted()}"


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
    elements = split_list(text)
    return frozenset(elements) if isinstance(key.default, frozenset) else elements


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
