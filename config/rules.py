"""Which values of a type a key accepts beyond being of that type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Rule(Protocol):
    """A restriction on a typed value."""

    def complaint(self, value: object) -> str | None:
        """Say what is wrong with the value, or return None when nothing is."""

    def __str__(self) -> str:
        """The accepted values, for documentation."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number between two bounds, each inclusive and each optional."""

    low: float | None = None
    high: float | None = None

    def complaint(self, value: object) -> str | None:
        """Say which bound the number breaks."""
        assert isinstance(value, int | float)
        if self.low is not None and value < self.low:
            return f"Value must be at least {self.low}"
        if self.high is not None and value > self.high:
            return f"Value must be no more than {self.high}"
        return None

    def __str__(self) -> str:
        """The interval, open ends as dots."""
        low = "..." if self.low is None else str(self.low)
        high = "..." if self.high is None else str(self.high)
        return f"[{low},...]" if self.high is None else f"[{low},...,{high}]"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A string, or every element of a list, out of a closed set."""

    choices: Sequence[str]
    ignore_case: bool = False

    def complaint(self, value: object) -> str | None:
        """Name the accepted strings when one is not among them."""
        elements = [value] if isinstance(value, str) else value
        assert isinstance(elements, tuple | frozenset | list)
        for element in elements:
            if self._folded(element) not in {self._folded(choice) for choice in self.choices}:
                return f"String must be one of: {', '.join(self.choices)}"
        return None

    def __str__(self) -> str:
        """The accepted strings."""
        return f"[{', '.join(self.choices)}]"

    def _folded(self, text: str) -> str:
        return text.lower() if self.ignore_case else text


@dataclass(frozen=True, slots=True)
class RangeOr:
    """A number between two bounds, or one special number that stands for something else."""

    special: int
    low: int
    high: int

    def complaint(self, value: object) -> str | None:
        """Say what the number should have been."""
        assert isinstance(value, int)
        if value == self.special or self.low <= value <= self.high:
            return None
        return f"Value must be between {self.low} and {self.high} or equal to {self.special}"

    def __str__(self) -> str:
        """The interval and the special number."""
        return f"[{self.low},...,{self.high}] or {self.special}"
