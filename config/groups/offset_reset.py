"""Start offset of a share group: earliest, latest, or by duration (KIP-1106)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from config.errors import invalid

EARLIEST, LATEST = "earliest", "latest"
BY_DURATION = "by_duration:"
LONGEST_DURATION_MS = (1 << 63) - 1

# Syntax of `java.time.Duration.parse`: days to seconds, each with a sign of its own.
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?[0-9]+)D)?"
    r"(?:T(?=[-+0-9])(?:(?P<hours>[-+]?[0-9]+)H)?(?:(?P<minutes>[-+]?[0-9]+)M)?"
    r"(?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_LONGEST_TEXT = 100


def duration_ms(reset: str) -> int | None:
    """Return the duration before now, of `by_duration:PT1H` 3,600,000; None for the other two.

    Raises ValueError for any other text.
    """
    if reset in (EARLIEST, LATEST):
        return None
    text = reset.removeprefix(BY_DURATION)
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if text == reset or found is None or not any(found[unit] for unit in _MS):
        raise ValueError(f"{reset!r} is no way to reset offsets")
    nanoseconds = sum(int(found[unit] or 0) * one for unit, one in _MS.items()) * 1_000_000
    fraction = int((found["fraction"] or "").ljust(9, "0"))
    nanoseconds += -fraction if (found["seconds"] or "").startswith("-") else fraction
    nanoseconds *= -1 if found["sign"] == "-" else 1
    if not 0 <= nanoseconds // 1_000_000 <= LONGEST_DURATION_MS:
        raise ValueError(f"{reset!r} is negative or too long")
    return nanoseconds // 1_000_000


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """A rule: one of the three ways."""

    def check(self, name: str, value: object) -> None:
        """Raise ConfigError for anything else."""
        try:
            duration_ms(str(value))
        except ValueError:
            raise invalid(
                name,
                value,
                f"Invalid value `{value}` for configuration {name}. The value must be either "
                "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
            ) from None

    def __str__(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"
