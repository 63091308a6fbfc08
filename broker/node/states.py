"""What a supervisor knows of one of its brokers, as a table; and how long it waits. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class State(Enum):
    """How a broker is."""

    DOWN = "down"
    """It does not run, and is not to."""

    STARTING = "starting"
    """Its process runs; whether it has begun to serve, or has just been found, is not known yet."""

    SERVING = "serving"
    STOPPING = "stopping"
    """It was asked to end."""

    WAITING = "waiting"
    """It has ended by itself, and is started again after a while."""


class Event(Enum):
    """What can happen to it."""

    RUNS = "runs"
    """Its process was started, or found."""

    SERVES = "serves"
    """It has said so."""

    STOP = "stop"
    """It is to end: for good, or to begin anew."""

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
"""What is not here cannot happen; that somebody serves is not asked of one that is stopping."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before a broker is started that has ended by itself."""

    first_ms: int
    longest_ms: int

    def failures(self, before: int, served_ms: int) -> int:
        """How many times in a row it has failed now; one that served for long begins anew."""
        return 1 if served_ms >= self.longest_ms else before + 1

    def wait_ms(self, failures: int) -> int:
        """The wait after so many failures in a row, of which there is at least one."""
        assert failures > 0, failures
        doublings = min(failures - 1, self.longest_ms.bit_length())
        return min(self.longest_ms, self.first_ms << doublings)
