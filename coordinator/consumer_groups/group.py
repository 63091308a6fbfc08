"""A consumer group as built from its records: members, epochs, target and current assignment.

Changed by replay alone. Sums over members are kept while members change, since a heartbeat may cost
no more in a group of ten thousand members than in one of ten.
"""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.consumer_groups.member import ConsumerMember
from coordinator.modern_groups.assignments import NOTHING, Target
from coordinator.modern_groups.group import ModernGroup

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.consumer_groups.member import Owned
    from coordinator.consumer_groups.records import ResolvedPattern
    from coordinator.modern_groups.group_kind import CommittedPartition

NOBODY: Final = -1
"""The epoch of a partition without an owner."""


class ConsumerGroupState(enum.Enum):
    """The value is the name that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target assignment is of an earlier epoch than the group."""
    RECONCILING = "Reconciling"
    """Some member does not have its part of the target assignment yet."""
    STABLE = "Stable"


class Subscriptions(NamedTuple):
    """Numbers of members by subscription."""

    names: Counter[str]
    """Members by topic, of subscriptions by name."""
    patterns: Counter[str]
    """Members by regular expression."""
    matched: Counter[str]
    """Regular expressions by topic that they match."""

    @property
    def topics(self) -> AbstractSet[str]:
        """All topics that have a subscriber."""
        return self.names.keys() | self.matched.keys() if self.matched else self.names.keys()

    def copy(self) -> Subscriptions:
        """One that may be changed."""
        return Subscriptions(self.names.copy(), self.patterns.copy(), self.matched.copy())

    def are_alike(self, member_count: int) -> bool:
        """Return whether all members subscribe to the same topics, as far as the sums show."""
        if not self.patterns:
            return all(count == member_count for count in self.names.values())
        if next(iter(self.patterns.values())) != member_count:
            return False
        return not self.names and all(count == 1 for count in self.matched.values())


class ConsumerGroup(ModernGroup[ConsumerMember, Target]):
    """One group."""

    __slots__ = (
        "assignors",
        "classic_count",
        "classic_protocols",
        "has_topics_record",
        "owners",
        "resolved",
        "static_members",
        "subscriptions",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.owners: dict[UUID, dict[int, int]] = {}
        """Member epoch of the owner of a partition, including one that still has to revoke it."""
        self.subscriptions = Subscriptions(Counter(), Counter(), Counter())
        self.assignors: Counter[str] = Counter()
        """Members by the assignor that they prefer."""
        self.classic_count = 0
        """Members that speak the classic protocol."""
        self.classic_protocols: Counter[str] = Counter()
        """Number of classic members by protocol that they support."""
        self.resolved: dict[str, ResolvedPattern] = {}
        self.has_topics_record = False

    @property
    def state(self) -> ConsumerGroupState:
        """State as reported to clients; costs a look at every member."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member that has the instance id."""
        return self.members.get(self.static_members.get(instance_id, ""))

    def target_of(self, member: ConsumerMember) -> Target:
        """Return the target assignment of a member, or of the static member it will replace."""
        member_id = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id, member_id)
        return self.targets.get(member_id, NOTHING)

    def subscribed_topics(self, member: ConsumerMember) -> AbstractSet[str]:
        """All topics that a member subscribes to, whether they exist or not."""
        resolved = self.resolved.get(member.pattern) if member.pattern else None
        if resolved is None or not resolved.topics:
            return member.topics
        return member.topics | resolved.topics if member.topics else resolved.topics

    def owner_epoch(self, topic_id: UUID, partition: int) -> int:
        """The member epoch of the partition's owner; NOBODY if it is free."""
        partitions = self.owners.get(topic_id)
        return NOBODY if partitions is None else partitions.get(partition, NOBODY)

    def assigned_since(self, member: ConsumerMember, committed: CommittedPartition) -> int | None:
        """The epoch in which a member got a partition; None if it does not own it."""
        topic_id = committed.topic_id
        return None if topic_id is None else member.assignment_epoch(topic_id, committed.partition)

    # Replay

    def put_member(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count_classic(old, member)
        recount(self.subscriptions, old, member)
        recount_assignors(self.assignors, old, member)
        if old is not None:
            self._release(old.assigned, old.member_epoch)
            self._release(old.revoking, old.member_epoch)
        self._occupy(member.assigned, member.member_epoch)
        self._occupy(member.revoking, member.member_epoch)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._count_classic(old, None)
        recount(self.subscriptions, old, None)
        recount_assignors(self.assignors, old, None)
        self._release(old.assigned, old.member_epoch)
        self._release(old.revoking, old.member_epoch)
        if old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)

    def put_pattern(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        """Set the topics that a regular expression matches; None forgets it."""
        old = self.resolved.pop(pattern, None)
        rematch(self.subscriptions, old, resolved)
        if resolved is not None:
            self.resolved[pattern] = resolved

    def _count_classic(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        if new is not None and new.classic is not None:
            self.classic_count += 1
            self.classic_protocols.update({each.name for each in new.classic.supported_protocols})
        if old is not None and old.classic is not None:
            self.classic_count -= 1
            names = tuple({each.name for each in old.classic.supported_protocols})
            _subtract(self.classic_protocols, names)

    def _release(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            owners = self.owners.get(topic_id)
            if owners is None:
                continue
            for partition in partitions:
                if owners.get(partition) == epoch:
                    del owners[partition]
            if not owners:
                del self.owners[topic_id]

    def _occupy(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, epoch))


def recount(
    subscriptions: Subscriptions, old: ConsumerMember | None, new: ConsumerMember | None
) -> None:
    """Have the sums contain `new` in the place of `old`."""
    names, patterns = subscriptions.names, subscriptions.patterns
    old_names = frozenset() if old is None else old.topics
    new_names = frozenset() if new is None else new.topics
    if old_names is not new_names:
        names.update(new_names)
        _subtract(names, old_names)
    old_pattern = None if old is None else old.pattern
    new_pattern = None if new is None else new.pattern
    if old_pattern != new_pattern:
        if new_pattern:
            patterns[new_pattern] += 1
        if old_pattern:
            _subtract(patterns, (old_pattern,))


def rematch(
    subscriptions: Subscriptions, old: ResolvedPattern | None, new: ResolvedPattern | None
) -> None:
    """Have the sums contain the topics of `new` in the place of those of `old`."""
    if new is not None:
        subscriptions.matched.update(new.topics)
    if old is not None:
        _subtract(subscriptions.matched, old.topics)


def recount_assignors(
    assignors: Counter[str], old: ConsumerMember | None, new: ConsumerMember | None
) -> None:
    """Have the sums contain the choice of `new` in the place of that of `old`."""
    if new is not None and new.assignor is not None:
        assignors[new.assignor] += 1
    if old is not None and old.assignor is not None:
        _subtract(assignors, (old.assignor,))


def preferred_assignor(assignors: Counter[str]) -> str | None:
    """The assignor that most members prefer; None if no member prefers any.

    Of two with as many members it is the first by name; in Apache Kafka it is either.
    """
    return max(sorted(assignors), key=assignors.__getitem__, default=None)


def _subtract(counts: Counter[str], names: AbstractSet[str] | tuple[str, ...]) -> None:
    for name in names:
        left = counts[name] - 1
        if left > 0:
            counts[name] = left
        else:
            del counts[name]
