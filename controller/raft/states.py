"""States of an observer, and the events that lead from one to another.

state         meaning                                        asks
UNATTACHED    no leader is known, or not its address         any bootstrap server, Fetch
FOLLOWING     the leader and its address are known           the leader, Fetch
DOWNLOADING   so they are, and its snapshot is to be had     the leader, FetchSnapshot
"""

from __future__ import annotations

import enum
from typing import Final


class State(enum.Enum):
    """Stages of following a leader."""

    UNATTACHED = enum.auto()
    FOLLOWING = enum.auto()
    DOWNLOADING = enum.auto()


class Event(enum.Enum):
    """Changes of the state."""

    LEADER_LOST = enum.auto()
    """A later epoch, of which the leader is not known, or not where it is."""
    LEADER_FOUND = enum.auto()
    SNAPSHOT_NEEDED = enum.auto()
    SNAPSHOT_ENDED = enum.auto()
    """It is complete, or gone."""


TRANSITIONS: Final = {
    (State.UNATTACHED, Event.LEADER_LOST): State.UNATTACHED,
    (State.UNATTACHED, Event.LEADER_FOUND): State.FOLLOWING,
    (State.FOLLOWING, Event.LEADER_LOST): State.UNATTACHED,
    (State.FOLLOWING, Event.LEADER_FOUND): State.FOLLOWING,
    (State.FOLLOWING, Event.SNAPSHOT_NEEDED): State.DOWNLOADING,
    (State.DOWNLOADING, Event.LEADER_LOST): State.UNATTACHED,
    (State.DOWNLOADING, Event.LEADER_FOUND): State.FOLLOWING,
    (State.DOWNLOADING, Event.SNAPSHOT_ENDED): State.FOLLOWING,
}
