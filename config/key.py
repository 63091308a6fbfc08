"""Definition of a configuration key, and the functions with which rows declare one.

A row is a dataclass field::

    log_segment_bytes: int = integer(1 << 30, low=14, importance=HIGH, scope=CLUSTER_WIDE)
    '''Size at which the active segment is closed and a new one is begun.'''

The field's type is for the rest of the broker; the `Key` in its metadata is for parsing,
DescribeConfigs and the documentation; its docstring is the key's documentation.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from config.rules import OneOf, Range, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

Value = bool | int | float | str | tuple[str, ...] | frozenset[str] | None
V = TypeVar("V", bound=Value)


class Type(IntEnum):
    """A key's type, by the code it has in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    """Importance of a key for users, as in Apache Kafka's documentation."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Scope(Enum):
    """Scope in which a broker key can change at run time."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    DYNAMIC_ONLY = "dynamic only"
    """Not in a property file, and of each broker or of all."""


HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Scope.READ_ONLY, Scope.PER_BROKER, Scope.CLUSTER_WIDE
DYNAMIC_ONLY = Scope.DYNAMIC_ONLY

LONG_MAX = (1 << 63) - 1
HOUR_MS = 3_600_000
INT_MAX = (1 << 31) - 1
DOUBLE_MAX = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Definition of one key but for its name, which the field has."""

    type: Type
    default: Value
    rule: Rule | None = None
    importance: Importance = MEDIUM
    scope: Scope = READ_ONLY
    acts: bool = False
    """True if the broker acts on it; otherwise setting it logs a warning."""
    needs_restart: bool = False
    """True if it is read only at the start, though Apache Kafka's brokers can change it later."""
    internal: bool = False
    """Apache Kafka keeps it out of its documentation and of DescribeConfigs."""
    name: str | None = None
    """The key's name where it is not the field's with dots."""
    broker_keys: tuple[str, ...] = ()
    """For a topic key: the broker keys its default comes from, strongest first."""

    @property
    def is_changeable(self) -> bool:
        """True if a running broker takes a new value, for itself, for all, or for a listener."""
        return self.scope is not READ_ONLY and not self.needs_restart

    @property
    def is_sensitive(self) -> bool:
        """True if the value may never be shown."""
        return self.type is Type.PASSWORD


class Row(TypedDict, total=False):
    """Properties of a row besides type and default: fields of `Key`, and short forms of rules."""

    rule: Rule
    low: float
    high: float
    choices: Sequence[str]
    importance: Importance
    scope: Scope
    acts: bool
    needs_restart: bool
    internal: bool
    name: str
    broker_keys: tuple[str, ...]


def boolean(default: bool, **row: Unpack[Row]) -> bool:
    """Declare a BOOLEAN key."""
    return _declare(Type.BOOLEAN, default, row)


@overload
def integer(default: int, **row: Unpack[Row]) -> int: ...
@overload
def integer(default: None, **row: Unpack[Row]) -> int | None: ...
def integer(default: int | None, **row: Unpack[Row]) -> int | None:
    """Declare an INT key; `low` and `high` bound it."""
    return _declare(Type.INT, default, row)


@overload
def long(default: int, **row: Unpack[Row]) -> int: ...
@overload
def long(default: None, **row: Unpack[Row]) -> int | None: ...
def long(default: int | None, **row: Unpack[Row]) -> int | None:
    """Declare a LONG key; `low` and `high` bound it."""
    return _declare(Type.LONG, default, row)


def short(default: int, **row: Unpack[Row]) -> int:
    """Declare a SHORT key; `low` and `high` bound it."""
    return _declare(Type.SHORT, default, row)


def double(default: float, **row: Unpack[Row]) -> float:
    """Declare a DOUBLE key; `low` and `high` bound it."""
    return _declare(Type.DOUBLE, default, row)


@overload
def string(default: str, **row: Unpack[Row]) -> str: ...
@overload
def string(default: None, **row: Unpack[Row]) -> str | None: ...
def string(default: str | None, **row: Unpack[Row]) -> str | None:
    """Declare a STRING key; `choices` closes the set of values."""
    return _declare(Type.STRING, default, row)


def strings(*default: str, **row: Unpack[Row]) -> tuple[str, ...]:
    """Declare a LIST key whose order is significant; `choices` closes the set of elements."""
    return _declare(Type.LIST, default, row)


def optional_strings(**row: Unpack[Row]) -> tuple[str, ...]:
    """Declare a LIST key that Apache Kafka leaves null; here it is then empty."""
    nothing: tuple[str, ...] = ()
    return _field(Key(type=Type.LIST, default=None, **_spelled_out(row)), nothing)


def string_set(*default: str, **row: Unpack[Row]) -> frozenset[str]:
    """Declare a LIST key whose order is irrelevant; `choices` closes the set of elements."""
    return _declare(Type.LIST, frozenset(default), row)


def class_name(default: str | None = None, **row: Unpack[Row]) -> str | None:
    """Declare a CLASS key: the name of a Java class that Apache Kafka would load."""
    return _declare(Type.CLASS, default, row)


def password(**row: Unpack[Row]) -> str | None:
    """Declare a PASSWORD key: never shown, no default."""
    default: str | None = None
    return _declare(Type.PASSWORD, default, row)


def _declare(type_: Type, default: V, row: Row) -> V:
    return _field(Key(type=type_, default=default, **_spelled_out(row)), default)


def _field(key: Key, default: V) -> V:
    return dataclasses.field(default=default, metadata={"key": key})


def _spelled_out(row: Row) -> Any:  # noqa: ANN401  # what is left of the row are fields of Key
    """Expand short forms into rules."""
    low, high, choices = row.pop("low", None), row.pop("high", None), row.pop("choices", None)
    if choices is not None:
        row["rule"] = OneOf(choices)
    elif low is not None or high is not None:
        row["rule"] = Range(low, high)
    return row
