"""Authentication counts of a listener, for metrics."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Attempts:
    """Of one kind."""

    succeeded: int = 0
    failed: int = 0


@dataclass(slots=True)
class AuthenticationCounts:
    """Of one listener."""

    first: Attempts = field(default_factory=Attempts)
    again: Attempts = field(default_factory=Attempts)
    """Of clients whose session would have ended."""
    expired: int = 0
    """Connections closed because they sent a request after the end of their session."""
