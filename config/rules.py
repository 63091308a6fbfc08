"""Rules for the values of a key, beyond those of its type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from config.errors import ConfigError, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

_THROTTLED_REPLICA = re.compile(r"([0-9]+:[0-9]+)?")
ALL_REPLICAS = "*"
_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")


class Rule(Protocol):
    """A restriction on a typed value; as a string, the accepted values for documentation."""

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError when the key of that name cannot have that value."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two bounds, each inclusive and each optional."""

    low: float | None = None
    high: float | None = None

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError that names the bound that is exceeded."""
        assert isinstance(value, int | float)
        if self.low is not None and value < self.low:
            raise invalid(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise invalid(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        low = "" if self.low is None else self.low
        return f"[{low},...]" if self.high is None else f"[{low},...,{self.high}]"


@dataclass(frozen=True, slots=True)
class RangeOr:
    """A number between two bounds, or one special number that stands for something else."""

    special: int
    low: int
    high: int

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError with the allowed range of the number."""
        assert isinstance(value, int)
        if value != self.special and not self.low <= value <= self.high:
            why = f"Value must be between {self.low} and {self.high} or equal to {self.special}"
            raise invalid(name, value, why)

    def __str__(self) -> str:
        return f"[{self.low},...,{self.high}] or {self.special}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A string, or every element of a list, out of a closed set."""

    choices: Sequence[str]
    ignore_case: bool = False

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError that names the accepted strings."""
        accepted = {self._folded(choice) for choice in self.choices}
        for element in [value] if isinstance(value, str) else sorted_or_as_is(value):
            if self._folded(element) not in accepted:
                raise invalid(name, element, f"String must be one of: {', '.join(self.choices)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.choices)}]"

    def _folded(self, text: str) -> str:
        return text.lower() if self.ignore_case else text


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """Any string but the empty one, or any list with elements."""

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError for nothing."""
        if not value:
            why = "must not be empty. Valid values include: any non-empty value"
            raise ConfigError(f"Configuration '{name}' {why}", name)

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Principals:
    """Principals with semicolons between them, each as `User:alice`."""

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError that names an invalid principal."""
        assert isinstance(value, str)
        for principal in filter(None, map(str.strip, value.split(";"))):
            if ":" not in principal:
                why = "expected a string in format principalType:principalName"
                raise invalid(name, value, f"{why} but got {principal}")

    def __str__(self) -> str:
        return "principalType:principalName;..."


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """`*`, or a list of `partition:broker` pairs; empty elements count for nothing."""

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError with the format of a throttled replica."""
        elements = sorted_or_as_is(value)
        is_all = "".join(elements) == ALL_REPLICAS
        if not is_all and not all(map(_THROTTLED_REPLICA.fullmatch, elements)):
            why = f"{name} must be the literal '*' or a list of replicas in the following format: "
            raise invalid(name, f"[{', '.join(elements)}]", f"{why}{self}")

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


@dataclass(frozen=True, slots=True)
class Durations:
    """A list of lengths of time, at least one."""

    most: int

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError that names the one which is none."""
        elements = sorted_or_as_is(value)
        if not 0 < len(elements) <= self.most:
            raise invalid(name, ",".join(elements), f"there must be 1 to {self.most} of them")
        for element in elements:
            try:
                milliseconds(element)
            except ValueError as error:
                raise invalid(name, element, str(error)) from None

    def __str__(self) -> str:
        return "number with ms, s, m, h or d,..."


def milliseconds(text: str) -> int:
    """`90s` is 90,000. ValueError for other texts than a number with a unit."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number with one of the units {', '.join(_UNITS_MS)}")
    return int(match[1]) * _UNITS_MS[match[2]]


def sorted_or_as_is(value: object) -> Sequence[str]:
    """Put the elements of a list key into the order in which they are shown."""
    if isinstance(value, frozenset):
        return sorted(value)
    assert isinstance(value, tuple)
    return value
