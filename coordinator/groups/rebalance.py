"""Rebalances: start and end of the join phase, and members that are dropped.

Worked example with the initial delay of 3 s and two consumers whose rebalance timeout is 60 s:

    0.0 s  A joins an empty group   EMPTY → PREPARING_REBALANCE, JOIN timer 3 s, 57 s left
    1.0 s  B joins                  parked; remembered as a new member
    3.0 s  JOIN timer               B is new: 3 s more, 54 s left
    6.0 s  JOIN timer               no new member: generation 1, both answered, SYNC timer 60 s
    6.1 s  A, the leader, syncs     record appended and replayed: STABLE, both answered

In every later rebalance the phase ends as soon as all members have rejoined, or when the rebalance
timeout drops those that have not. Sources: KIP-62, KIP-134, KIP-345, KIP-394.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.effects import Effects
from coordinator.groups.responses import join_error, join_success, sync_error
from coordinator.groups.states import GroupEvent, GroupState
from coordinator.ports import TimerKey, TimerKind
from coordinator.records import empty_generation_record
from protocol.errors import ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataValue

if TYPE_CHECKING:
    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.member import Member
    from coordinator.ports import Timers
    from coordinator.settings import GroupSettings


class Rebalance:
    """Moves groups through their states. One for all groups of a shard; it has no state itself."""

    def __init__(self, settings: GroupSettings, timers: Timers) -> None:
        self._settings = settings
        self._timers = timers

    def prepare(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Start a join phase, unless one is in progress."""
        if group.state is GroupState.PREPARING_REBALANCE:
            return
        was_empty = group.state is GroupState.EMPTY
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(group, effects)
        group.pending_syncs.clear()
        self._timers.cancel(TimerKey(group.group_id, TimerKind.SYNC))
        group.enter(GroupEvent.REBALANCE, now_ms)
        delay_ms = group.rebalance_timeout_ms
        group.initial_delay_left_ms = None
        group.has_new_member = False
        if was_empty:
            initial_ms = self._settings.initial_rebalance_delay_ms
            group.initial_delay_left_ms = max(delay_ms - initial_ms, 0)
            delay_ms = initial_ms
        self._timers.start(TimerKey(group.group_id, TimerKind.JOIN), delay_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """End the join phase before its timeout if all members have joined."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.initial_delay_left_ms is None
            and group.has_all_members_joined
        ):
            self._complete(group, now_ms, effects)

    def on_join_timer(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """End the initial delay, or the rebalance timeout."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        left_ms = group.initial_delay_left_ms
        if left_ms and group.has_new_member:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            group.has_new_member = False
            group.initial_delay_left_ms = left_ms - delay_ms
            self._timers.start(TimerKey(group.group_id, TimerKind.JOIN), delay_ms)
        else:
            self._complete(group, now_ms, effects)

    def on_sync_timer(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Drop the members that have not sent SyncGroup in time."""
        if not group.pending_syncs:
            return
        assert group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        for member_id in list(group.pending_syncs):
            self.drop_member(group, member_id, effects)
        self.prepare(group, now_ms, effects)
        self.complete_if_all_joined(group, now_ms, effects)

    def on_synced(self, group: ClassicGroup, member: Member) -> None:
        """Note that a member has sent SyncGroup."""
        group.pending_syncs.pop(member.member_id, None)
        if not group.pending_syncs:
            self._timers.cancel(TimerKey(group.group_id, TimerKind.SYNC))

    def drop_member(self, group: ClassicGroup, member_id: str, effects: Effects) -> None:
        """Remove a member or pending member. Its parked replies get UNKNOWN_MEMBER_ID."""
        member = group.members.get(member_id)
        removed = group.remove_member(member_id)
        self.forget_session(group, member_id)
        if removed is None or member is None:
            return
        if member.joining is not None:
            effects.answer(member.joining, join_error(ErrorCode.UNKNOWN_MEMBER_ID))
        if member.syncing is not None:
            effects.answer(member.syncing, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        member.joining = member.syncing = None

    def remove_member(
        self, group: ClassicGroup, member_id: str, now_ms: int, effects: Effects
    ) -> None:
        """Remove a member or pending member, and rebalance the others if need be."""
        was_member = member_id in group.members
        self.drop_member(group, member_id, effects)
        if was_member and group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare(group, now_ms, effects)
        self.complete_if_all_joined(group, now_ms, effects)

    def touch(self, group: ClassicGroup, member: Member) -> None:
        """Extend the session of a member that has sent a request.

        Its timer is restarted only if it would fire too late; one that fires too early restarts
        itself (`on_session_timer`). So a heartbeat costs one assignment.
        """
        self._set_deadline(group, member, member.session_timeout_ms)

    def await_rejoin(self, group: ClassicGroup, member: Member) -> None:
        """Give a new member's JoinGroup five minutes: it cannot send heartbeats yet."""
        self._set_deadline(group, member, self._settings.new_member_join_timeout_ms)

    def on_session_timer(
        self, group: ClassicGroup, member_id: str, now_ms: int, effects: Effects
    ) -> None:
        """Check whether a member, or a pending one, has been silent for too long."""
        member = group.members.get(member_id)
        if member is None:
            if member_id in group.pending_members:
                self.remove_member(group, member_id, now_ms, effects)
            return
        left_ms = member.session_deadline_ms - self._timers.now_ms
        if left_ms <= 0 and member.is_parked and not member.is_new:
            left_ms = member.session_timeout_ms
        if left_ms <= 0:
            self.remove_member(group, member_id, now_ms, effects)
            return
        member.session_timer_due_ms = self._timers.now_ms + left_ms
        self._timers.start(TimerKey(group.group_id, TimerKind.SESSION, member_id), left_ms)

    def restart_session(self, group: ClassicGroup, member: Member) -> None:
        """Start a session and its timer, for a new member id or after loading."""
        member.session_deadline_ms = self._timers.now_ms + member.session_timeout_ms
        member.session_timer_due_ms = member.session_deadline_ms
        key = TimerKey(group.group_id, TimerKind.SESSION, member.member_id)
        self._timers.start(key, member.session_timeout_ms)

    def forget_session(self, group: ClassicGroup, member_id: str) -> None:
        """Cancel the session timer of a removed id."""
        self._timers.cancel(TimerKey(group.group_id, TimerKind.SESSION, member_id))

    def cancel_timers(self, group: ClassicGroup) -> None:
        """Cancel all timers of a group that is removed or unloaded."""
        self._timers.cancel(TimerKey(group.group_id, TimerKind.JOIN))
        self._timers.cancel(TimerKey(group.group_id, TimerKind.SYNC))
        for member_id in (*group.members, *group.pending_members):
            self.forget_session(group, member_id)

    def _set_deadline(self, group: ClassicGroup, member: Member, timeout_ms: int) -> None:
        member.session_deadline_ms = self._timers.now_ms + timeout_ms
        if member.session_deadline_ms < member.session_timer_due_ms:
            member.session_timer_due_ms = member.session_deadline_ms
            key = TimerKey(group.group_id, TimerKind.SESSION, member.member_id)
            self._timers.start(key, timeout_ms)

    def _fail_syncs(self, group: ClassicGroup, effects: Effects) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.syncing is not None:
                effects.answer(member.syncing, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
                member.syncing = None
                self.touch(group, member)

    def _complete(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        for member in [silent for silent in group.silent_members() if not silent.is_static]:
            self.drop_member(group, member.member_id, effects)
        if not group.members:
            self._empty(group, now_ms, effects)
        elif group.elect_leader_among_joined():
            self._start_generation(group, now_ms, effects)
        else:
            # Only silent static members are left: their sessions decide.
            group.initial_delay_left_ms = None
            delay_ms = group.rebalance_timeout_ms
            self._timers.start(TimerKey(group.group_id, TimerKind.JOIN), delay_ms)

    def _empty(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        self._timers.cancel(TimerKey(group.group_id, TimerKind.JOIN))
        record = empty_generation_record(group, group.generation + 1, now_ms)
        effects.records.append(record)
        value = record.value
        assert isinstance(value, GroupMetadataValue)

        def empty_in_memory(_: ErrorCode, __: int) -> Effects:
            group.restore(value)
            return Effects()

        assert effects.on_append_failed is None
        effects.on_append_failed = empty_in_memory

    def _start_generation(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        self._timers.cancel(TimerKey(group.group_id, TimerKind.JOIN))
        group.initial_delay_left_ms = None
        group.generation += 1
        group.protocol = group.select_protocol()
        group.forget_topics()
        group.enter(GroupEvent.ALL_JOINED, now_ms)
        for member in group.members.values():
            if member.joining is not None:
                effects.answer(member.joining, join_success(group, member))
                member.joining = None
            member.is_new = False
            group.pending_syncs[member.member_id] = None
            self.touch(group, member)
        group.awaiting_join = 0
        self._timers.start(TimerKey(group.group_id, TimerKind.SYNC), group.rebalance_timeout_ms)
