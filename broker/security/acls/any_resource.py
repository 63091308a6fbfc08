"""Authorization of an operation on any resource of a type (KIP-679).

Some pattern that allows must have names that no pattern denies:

    ALLOW literal a      DENY literal a                  none is left
    ALLOW prefix  ab     DENY prefix a                   none is left: `a…` has all of `ab…`
    ALLOW prefix  a      DENY prefix ab                  `ac` is left
    ALLOW literal *      DENY prefix a                   `b` is left
    whatever             DENY literal *                  none is left
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protocol.acl_types import WILDCARD, PatternType

if TYPE_CHECKING:
    from protocol.acl_types import ResourcePattern


@dataclass(slots=True)
class Patterns:
    """Names of patterns, by their type."""

    literal: set[str] = field(default_factory=set)
    prefixed: set[str] = field(default_factory=set)
    _prefix_lengths: set[int] = field(default_factory=set)

    def add(self, pattern: ResourcePattern) -> None:
        """Enter a pattern."""
        if pattern.pattern_type is PatternType.PREFIXED:
            self.prefixed.add(pattern.name)
            self._prefix_lengths.add(len(pattern.name))
        else:
            self.literal.add(pattern.name)

    def have_prefix_of(self, name: str) -> bool:
        """Return whether one of the prefixes is a prefix of that name."""
        return any(name[:length] in self.prefixed for length in self._prefix_lengths)


def is_any_allowed(allowed: Patterns, denied: Patterns, *, is_open: bool) -> bool:
    """Return whether any name is allowed and not denied; `is_open`: names without a list are."""
    if WILDCARD in denied.literal:
        return False
    if is_open or WILDCARD in allowed.literal:
        return True
    return any(not denied.have_prefix_of(prefix) for prefix in allowed.prefixed) or any(
        name not in denied.literal and not denied.have_prefix_of(name) for name in allowed.literal
    )
