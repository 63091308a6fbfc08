"""A share group as built from its records: members, epochs, assignment, initialised partitions.

Changed by replay alone.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from coordinator.modern_groups.assignments import NOTHING, Target
from coordinator.modern_groups.group import ModernGroup
from coordinator.share_groups.member import ShareMember


class ShareGroupState(enum.Enum):
    """The value is the name that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"


class TopicStates(NamedTuple):
    """Partitions of one topic that have state, or are about to get it."""

    name: str
    partitions: frozenset[int]


Initialised = Mapping[UUID, TopicStates]


class PartitionStates(NamedTuple):
    """The partitions that the share coordinator keeps state of for a group."""

    initialising: Initialised
    initialised: Initialised
    deleting: Mapping[UUID, str]
    """Names of topics by id."""


NO_STATES: Final = PartitionStates({}, {}, {})


class ShareGroup(ModernGroup[ShareMember, Target]):
    """One group."""

    __slots__ = ("changes", "names", "states")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.names: Counter[str] = Counter()
        """Members by topic that they subscribe to."""
        self.states = NO_STATES
        self.changes = 0
        """Grows whenever members, their targets or the initialised partitions may have changed."""

    @property
    def state(self) -> ShareGroupState:
        """State as reported to clients."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def target_of(self, member_id: str) -> Target:
        """A member's part of the target assignment."""
        return self.targets.get(member_id, NOTHING)

    # Replay

    def put_member(self, member: ShareMember) -> None:
        """Add or replace a member."""
        recount(self.names, self.members.get(member.member_id), member)
        self.members[member.member_id] = member
        self.changes += 1

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        old = self.members.pop(member_id, None)
        recount(self.names, old, None)
        self.changes += 1

    def put_target(self, member_id: str, target: Target | None) -> None:
        """Set a member's part of the target assignment; None forgets it."""
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target
        self.changes += 1

    def put_states(self, states: PartitionStates) -> None:
        """Set which partitions have state."""
        self.states = states
        self.changes += 1


def are_alike(names: Counter[str], member_count: int) -> bool:
    """Return whether all members subscribe to the same topics; `names` counts members by topic."""
    return all(count == member_count for count in names.values())


def recount(names: Counter[str], old: ShareMember | None, new: ShareMember | None) -> None:
    """Have the sums contain `new` in the place of `old`."""
    old_names = frozenset() if old is None else old.topics
    new_names = frozenset() if new is None else new.topics
    if old_names is new_names:
        return
    names.update(new_names)
    for name in old_names:
        names[name] -= 1
        if not names[name]:
            del names[name]
