"""A group of any modern kind as built from its records, changed by replay alone."""

from __future__ import annotations

from typing import Generic, TypeVar

from coordinator.modern_groups.epochs import FIRST_EPOCH

MemberT = TypeVar("MemberT")
TargetT = TypeVar("TargetT")


class ModernGroup(Generic[MemberT, TargetT]):
    """Common state of groups of all kinds."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Over the topics that the group depends on."""
        self.assignment_epoch = FIRST_EPOCH
        """The group's epoch of which the target assignment is."""
        self.assignment_timestamp_ms = 0
        """Time of the target assignment; 0 if there is none."""
        self.members: dict[str, MemberT] = {}
        """By id."""
        self.targets: dict[str, TargetT] = {}
        """Each member's part of the target assignment, by id."""

    def was_assigned_within(self, interval_ms: int, now_ms: int) -> bool:
        """Return whether the target assignment is younger than that, by the wall clock.

        One in the future is not: the clock was set back since, perhaps for good.
        """
        made_ms = self.assignment_timestamp_ms
        return made_ms > 0 and made_ms <= now_ms < made_ms + interval_ms

    def present_id(self, member_id: str) -> str | None:
        """The id itself while there is such a member, else None."""
        return member_id if member_id in self.members else None
