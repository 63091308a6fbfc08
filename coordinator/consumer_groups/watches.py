"""A shard's unstored state of consumer groups, besides sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.modern_groups.watches import FENCED_AT_ONCE, NEVER_MS, Watch, Watches

if TYPE_CHECKING:
    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember


@dataclass(slots=True)
class ConsumerWatch(Watch):
    """Unstored state of one group."""

    checked_revision: int = -1
    """The revision of the topics as of which the group's epoch is right."""
    checked_epoch: int = 0
    is_hashing: bool = False
    is_assigning: bool = False
    is_resolving: bool = False
    resolved_revision: int = -1
    """The revision of the topics in which its regular expressions were last resolved."""
    joins: dict[str, int] = field(default_factory=dict)
    """Deadlines by which classic members must join again."""
    syncs: dict[str, int] = field(default_factory=dict)
    """Deadlines by which members that have joined must send SyncGroup."""


class ConsumerWatches(Watches[ConsumerWatch]):
    """By group id."""

    def await_join(self, group_id: str, member: ConsumerMember) -> None:
        """Give a member its rebalance timeout to join again, unless that is running already."""
        watch = self.of(group_id)
        if member.member_id not in watch.joins:
            deadline_ms = watch.joins[member.member_id] = self.now_ms + member.rebalance_timeout_ms
            self.wake_by(group_id, watch, deadline_ms)

    def end_join(self, group_id: str, member_id: str) -> None:
        """The member has joined."""
        self.of(group_id).joins.pop(member_id, None)

    def await_sync(self, group_id: str, member: ConsumerMember) -> None:
        """Give a member that has joined its rebalance timeout to send SyncGroup."""
        watch = self.of(group_id)
        deadline_ms = watch.syncs[member.member_id] = self.now_ms + member.rebalance_timeout_ms
        self.wake_by(group_id, watch, deadline_ms)

    def end_sync(self, group_id: str, member_id: str) -> None:
        """The member has asked."""
        self.of(group_id).syncs.pop(member_id, None)

    def forget_member(self, group_id: str, member_id: str) -> None:
        """The member is removed."""
        super().forget_member(group_id, member_id)
        watch = self.of(group_id)
        watch.joins.pop(member_id, None)
        watch.syncs.pop(member_id, None)

    def late(self, group: ConsumerGroup) -> list[ConsumerMember]:
        """As `expired`, with members of the classic protocol that were slow."""
        late = {member.member_id: member for member in self.expired(group)}
        watch, now_ms = self.of(group.group_id), self.now_ms
        next_ms = NEVER_MS
        for deadlines in (watch.joins, watch.syncs):
            for member_id, deadline_ms in list(deadlines.items()):
                member = group.members.get(member_id)
                if member is None or member.classic is None:
                    del deadlines[member_id]
                elif deadline_ms <= now_ms:
                    late[member_id] = member
                else:
                    next_ms = min(next_ms, deadline_ms)
        if len(late) > FENCED_AT_ONCE:
            next_ms = now_ms + 1
        if next_ms != NEVER_MS:
            self.wake_by(group.group_id, watch, next_ms)
        return list(late.values())[:FENCED_AT_ONCE]
