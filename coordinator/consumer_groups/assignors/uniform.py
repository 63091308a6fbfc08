"""`uniform`: equal numbers of partitions for all members, with few moves.

Where all members subscribe to the same topics, two passes suffice: each member keeps partitions up
to its quota, then the rest goes to members below it. Worked example, seven partitions of a topic, A
has 0 to 3 and B has 4 to 6, C joins: the quota is two, and three for one member, which A is. A
keeps 0, 1 and 2, B keeps 4 and 5, C gets 3 and 6. Otherwise see `balance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups.assignors.balance import assign_balanced
from coordinator.consumer_groups.assignors.specification import MEMBERS_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.consumer_groups.assignors.specification import (
        Assigning,
        Assignment,
        Specification,
    )
    from coordinator.modern_groups.assignments import Target


def assign_uniformly(group: Specification) -> Assigning:
    """Every member's part."""
    if not group.members:
        return {}
    if not group.are_alike:
        return (yield from assign_balanced(group))
    topics = next(iter(group.members.values())).topics
    if not topics:
        return {}
    return (yield from _Quotas(group, topics).assign())


class _Quotas:
    """The assignment of members that all subscribe to the same topics."""

    def __init__(self, group: Specification, topics: AbstractSet[UUID]) -> None:
        self._group = group
        self._topics = topics
        total = sum(group.partition_counts[topic_id] for topic_id in topics)
        self._quota, self._extra = divmod(total, len(group.members))
        """Partitions of each member, and the members that get one more."""
        self._unassigned: list[tuple[UUID, int]] = []
        self._unfilled: list[tuple[str, int]] = []
        self._assignment: Assignment = {}

    def assign(self) -> Assigning:
        yield from self._find_unassigned()
        left = len(self._group.members)
        for member_id, member in self._group.members.items():
            self._keep(member_id, member.target, left)
            left -= 1
            if left % MEMBERS_PER_STEP == 0:
                yield
        yield from self._fill()
        return self._assignment

    def _find_unassigned(self) -> Assigning:
        assigned: dict[UUID, set[int]] = {topic_id: set() for topic_id in self._topics}
        for count, member in enumerate(self._group.members.values()):
            for topic_id, partitions in member.target.items():
                if topic_id in assigned:
                    assigned[topic_id] |= partitions
            if count % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
                yield
        for topic_id in sorted(self._topics):
            count = self._group.partition_counts[topic_id]
            taken = assigned[topic_id]
            self._unassigned += [(topic_id, index) for index in range(count) if index not in taken]
            yield
        return {}

    def _keep(self, member_id: str, target: Target, members_left: int) -> None:
        """Let a member keep its partitions, up to its quota; `members_left` counts it too."""
        has_extra = self._extra > 0
        room = self._quota + has_extra
        kept: dict[UUID, frozenset[int]] = {}
        for topic_id, partitions in target.items():
            if topic_id not in self._topics:
                continue
            if len(partitions) <= room:
                kept[topic_id] = partitions
                room -= len(partitions)
                continue
            ordered = sorted(partitions)
            if room:
                kept[topic_id] = frozenset(ordered[:room])
            self._unassigned += [(topic_id, index) for index in ordered[room:]]
            room = 0
        if room > 0 and has_extra and members_left > self._extra:
            # A later member may already have one more, and keep it.
            room -= 1
            has_extra = False
        if room > 0:
            self._unfilled.append((member_id, room))
        self._extra -= has_extra
        self._assignment[member_id] = target if kept == target else kept

    def _fill(self) -> Assigning:
        given = 0
        for count, (member_id, room) in enumerate(self._unfilled):
            added: dict[UUID, list[int]] = {}
            for topic_id, index in self._unassigned[given : given + room]:
                added.setdefault(topic_id, []).append(index)
            given += room
            target = dict(self._assignment[member_id])
            for topic_id, indexes in added.items():
                target[topic_id] = target.get(topic_id, frozenset()).union(indexes)
            self._assignment[member_id] = target
            if count % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
                yield
        assert given >= len(self._unassigned), "the quotas add up to all partitions"
        return {}
