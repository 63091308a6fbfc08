"""State of a broker in its supervisor, as a table of transitions; and restart backoff. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class State(Enum):
    """State of a broker."""

    DOWN = "down"
    """It does not run, and is not meant to."""

    STARTING = "starting"
    """Its process runs; whether it has begun to serve, or has just been found, is not known yet."""

    SERVING = "serving"
    STOPPING = "stopping"
    """It was asked to end."""

    WAITING = "waiting"
    """It has ended by itself, and is restarted after the backoff."""


class Event(Enum):
    """Event of a broker."""

    RUNS = "runs"
    """Its process was started, or found."""

    SERVES = "serves"
    """It has reported that it serves."""

    STOP = "stop"
    """A request to end: for good, or to restart."""

    ENDED = "ended"


TRANSITIONS: Final = {
    (State.DOWN, Event.RUNS): State.STARTING,
    (State.DOWN, Event.STOP): State.DOWN,
    (State.STARTING, Event.SERVES): State.SERVING,
    (State.STARTING, Event.STOP): State.STOPPING,
    (State.STARTING, Event.ENDED): State.WAITING,
    (State.SERVING, Event.STOP): State.STOPPING,
    (State.SERVING, Event.ENDED): State.WAITING,
    (State.STOPPING, Event.STOP): State.STOPPING,
    (State.STOPPING, Event.ENDED): State.DOWN,
    (State.WAITING, Event.RUNS): State.STARTING,
    (State.WAITING, Event.STOP): State.DOWN,
}
"""Possible transitions; a stopping broker is not asked whether it serves."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Backoff before the restart of a broker that has ended by itself."""

    first_ms: int
    longest_ms: int

    def failures(self, before: int, served_ms: int) -> int:
        """Number of failures in a row; restarts from one after a long time of service."""
        return 1 if served_ms >= self.longest_ms else before + 1

    def wait_ms(self, failures: int) -> int:
        """Wait after that number of failures in a row, at least one."""
        assert failures > 0, failures
        doublings = min(failures - 1, self.longest_ms.bit_length())
        return min(self.longest_ms, self.first_ms << doublings)
