"""`range`: of every topic each subscriber gets one range, in the order of members.

Static members come first, by instance id, then the others by member id; so a member has the same
place in all topics. Worked example, two topics of five partitions and members A and B: A gets 0 to
2 of both, B gets 3 and 4 of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups.assignors.specification import MEMBERS_PER_STEP

if TYPE_CHECKING:
    from uuid import UUID

    from coordinator.consumer_groups.assignors.specification import (
        Assigning,
        Assignment,
        MemberSpecification,
        Specification,
    )
    from coordinator.modern_groups.assignments import Target


def assign_ranges(group: Specification) -> Assigning:
    """Every member's part."""
    ranges: dict[UUID, _Ranges] = {}
    for count, member in enumerate(group.members.values()):
        for topic_id in member.topics:
            known = ranges.get(topic_id)
            if known is None:
                known = ranges[topic_id] = _Ranges(group.partition_counts[topic_id])
            known.subscribers += 1
        if count % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    assignment: Assignment = {}
    for count, (member_id, member) in enumerate(sorted(group.members.items(), key=_place)):
        target: Target = {
            topic_id: part for topic_id in member.topics if (part := ranges[topic_id].next_part())
        }
        assignment[member_id] = target
        if count % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    return assignment


def _place(entry: tuple[str, MemberSpecification]) -> tuple[bool, str]:
    member_id, member = entry
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member_id


class _Ranges:
    """The partitions of a topic that are not given yet."""

    __slots__ = ("_given", "_members", "_partitions", "subscribers")

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._given = 0
        self._members = 0
        self.subscribers = 0

    def next_part(self) -> frozenset[int]:
        """The part of the next member: those before the remainder get one more."""
        quota, remainder = divmod(self._partitions, self.subscribers)
        size = quota + (self._members < remainder)
        self._members += 1
        start, self._given = self._given, self._given + size
        return frozenset(range(start, self._given))
