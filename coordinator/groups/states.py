"""The states of a classic group and every transition between them.

    EMPTY ──rebalance──▶ PREPARING_REBALANCE ──all joined──▶ COMPLETING_REBALANCE
      ▲                    │      ▲      ▲                     │           │
      └────emptied─────────┘      │      └──────rebalance──────┘           │ assigned
                                  └─────────rebalance───────── STABLE ◀────┘

DEAD is final: the group is no longer in the shard. Replay enters EMPTY or STABLE directly, because
the record of a generation is written only where a rebalance ends.
"""

from __future__ import annotations

import enum


class GroupState(enum.Enum):
    """The value is the name that clients see in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    """No members; perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for the members to join the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; waiting for the leader's assignment."""
    STABLE = "Stable"
    """Every member can have its assignment."""
    DEAD = "Dead"
    """Removed, or its shard has moved to another broker."""


class GroupEvent(enum.Enum):
    """The events that move a group from one state to another."""

    REBALANCE = enum.auto()
    """Membership or metadata changed."""
    ALL_JOINED = enum.auto()
    """The join phase ended with at least one member."""
    EMPTIED = enum.auto()
    """The record of a generation without members was replayed."""
    ASSIGNED = enum.auto()
    """The record of a generation with members was replayed."""
    REMOVED = enum.auto()
    """Deleted, expired or unloaded."""


TRANSITIONS: dict[tuple[GroupState, GroupEvent], GroupState] = {
    (GroupState.EMPTY, GroupEvent.REBALANCE): GroupState.PREPARING_REBALANCE,
    (GroupState.EMPTY, GroupEvent.EMPTIED): GroupState.EMPTY,
    (GroupState.EMPTY, GroupEvent.ASSIGNED): GroupState.STABLE,
    (GroupState.EMPTY, GroupEvent.REMOVED): GroupState.DEAD,
    (GroupState.PREPARING_REBALANCE, GroupEvent.ALL_JOINED): GroupState.COMPLETING_REBALANCE,
    (GroupState.PREPARING_REBALANCE, GroupEvent.EMPTIED): GroupState.EMPTY,
    (GroupState.PREPARING_REBALANCE, GroupEvent.REMOVED): GroupState.DEAD,
    (GroupState.COMPLETING_REBALANCE, GroupEvent.REBALANCE): GroupState.PREPARING_REBALANCE,
    (GroupState.COMPLETING_REBALANCE, GroupEvent.ASSIGNED): GroupState.STABLE,
    (GroupState.COMPLETING_REBALANCE, GroupEvent.REMOVED): GroupState.DEAD,
    (GroupState.STABLE, GroupEvent.REBALANCE): GroupState.PREPARING_REBALANCE,
    (GroupState.STABLE, GroupEvent.ASSIGNED): GroupState.STABLE,
    (GroupState.STABLE, GroupEvent.EMPTIED): GroupState.EMPTY,
    (GroupState.STABLE, GroupEvent.REMOVED): GroupState.DEAD,
}
"""Any pair that is not here is our mistake and raises KeyError."""
