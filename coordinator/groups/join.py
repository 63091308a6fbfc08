"""JoinGroup: admission of members, their ids, and the start of rebalances.

    member id ""       static instance known     → replaces the member, the old id is fenced
    (a new member)     static instance new       → member at once
                       dynamic, version 4+       → gets an id, MEMBER_ID_REQUIRED, is pending
                       dynamic, older            → member at once
    a pending id                                 → member
    a member's id      state PREPARING           → parked with the others
                       COMPLETING, same metadata → current generation is sent again
                       STABLE, follower, same    → current generation is sent again
                       otherwise                 → new rebalance

Sources: KIP-62, KIP-345, KIP-394, KIP-814.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.group import NO_MEMBER_ID, ClassicGroup
from coordinator.groups.member import Member
from coordinator.groups.membership import member_error
from coordinator.groups.responses import join_error, join_success
from coordinator.groups.states import GroupState
from coordinator.groups.static_members import StaticMembers
from coordinator.ports import TimerKey, TimerKind
from protocol.errors import ErrorCode
from protocol.wire import MAX_STRING_BYTES

if TYPE_CHECKING:
    from coordinator.effects import Effects
    from coordinator.groups.member import Protocols
    from coordinator.groups.rebalance import Rebalance
    from coordinator.ports import MemberIds, Reply, Timers
    from coordinator.settings import GroupSettings
    from protocol.messages.group_membership import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_SINCE = 4
REBALANCE_TIMEOUT_SINCE = 1
SKIP_ASSIGNMENT_SINCE = 9


class Caller(NamedTuple):
    """The client of a JoinGroup, from its connection."""

    client_id: str
    client_host: str
    api_version: int


class Joining(NamedTuple):
    """One JoinGroup, parsed."""

    request: JoinGroupRequest
    caller: Caller
    reply: Reply[JoinGroupResponse]
    protocols: Protocols
    rebalance_timeout_ms: int
    now_ms: int


class Joins:
    """Decides on JoinGroup requests for the groups of a shard."""

    def __init__(
        self, settings: GroupSettings, timers: Timers, new_id: MemberIds, rebalance: Rebalance
    ) -> None:
        self._settings = settings
        self._timers = timers
        self._new_id = new_id
        self._rebalance = rebalance
        self._static_members = StaticMembers(rebalance)

    def session_error(self, session_timeout_ms: int) -> ErrorCode:
        """INVALID_SESSION_TIMEOUT outside the configured bounds."""
        least, most = self._settings.min_session_timeout_ms, self._settings.max_session_timeout_ms
        if least <= session_timeout_ms <= most:
            return ErrorCode.NONE
        return ErrorCode.INVALID_SESSION_TIMEOUT

    def join(self, group: ClassicGroup, joining: Joining, effects: Effects) -> None:
        """Answer or park one JoinGroup, then see whether the join phase is complete."""
        member_id = joining.request.member_id
        if not self._has_room(group, member_id):
            self._rebalance.drop_member(group, member_id, effects)
            effects.answer(joining.reply, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(joining.request.protocol_type, joining.protocols):
            error = join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
            effects.answer(joining.reply, error)
        elif member_id == NO_MEMBER_ID:
            self._join_new(group, joining, effects)
        elif member_id in group.pending_members:
            self._add(group, joining, member_id, effects)
        else:
            self._join_again(group, joining, effects)
        self._rebalance.complete_if_all_joined(group, joining.now_ms, effects)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the group has room. Members stay; while preparing, the first to rejoin."""
        member = group.members.get(member_id)
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            has_joined = member is not None and member.joining is not None
            return has_joined or group.awaiting_join < self._settings.max_size
        return member is not None or len(group.members) < self._settings.max_size

    def _join_new(self, group: ClassicGroup, joining: Joining, effects: Effects) -> None:
        instance_id = joining.request.group_instance_id
        prefix = joining.caller.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{self._new_id()}"
        if len(member_id.encode()) > MAX_STRING_BYTES:
            # Neither the answer nor the group's record could hold it.
            effects.answer(joining.reply, join_error(ErrorCode.INVALID_REQUEST))
        elif instance_id is not None and instance_id in group.static_members:
            self._static_members.take_over(group, joining, member_id, effects)
        elif instance_id is None and joining.caller.api_version >= MEMBER_ID_REQUIRED_SINCE:
            group.pending_members[member_id] = None
            key = TimerKey(group.group_id, TimerKind.SESSION, member_id)
            self._timers.start(key, joining.request.session_timeout_ms)
            effects.answer(joining.reply, join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, joining, member_id, effects)

    def _add(self, group: ClassicGroup, joining: Joining, member_id: str, effects: Effects) -> None:
        request, caller = joining.request, joining.caller
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=caller.client_id,
            client_host=caller.client_host,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=joining.protocols,
            is_new=True,
            joining=joining.reply,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.generation == 0:
            group.has_new_member = True
        self._timers.cancel(TimerKey(group.group_id, TimerKind.SESSION, member_id))
        group.add_member(member, request.protocol_type)
        self._rebalance.await_rejoin(group, member)
        self._rebalance.prepare(group, joining.now_ms, effects)

    def _join_again(self, group: ClassicGroup, joining: Joining, effects: Effects) -> None:
        request = joining.request
        error = member_error(group, request.member_id, request.group_instance_id)
        if error is ErrorCode.NONE and group.state is GroupState.EMPTY:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            effects.answer(joining.reply, join_error(error, request.member_id))
            return
        member = group.members[request.member_id]
        if self._knows_generation(group, member, joining.protocols):
            effects.answer(joining.reply, join_success(group, member))
            return
        self._park(group, member, joining, effects)
        self._rebalance.prepare(group, joining.now_ms, effects)

    @staticmethod
    def _knows_generation(group: ClassicGroup, member: Member, protocols: Protocols) -> bool:
        """Return whether this JoinGroup repeats one whose response was lost."""
        if member.protocols != protocols:
            return False
        if group.state is GroupState.STABLE:
            return group.leader_id != member.member_id
        return group.state is GroupState.COMPLETING_REBALANCE

    def _park(
        self, group: ClassicGroup, member: Member, joining: Joining, effects: Effects
    ) -> None:
        if member.joining is not None:
            # Joined twice, on two connections: only the later one can still be listened to.
            effects.answer(
                member.joining, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            )
        else:
            group.awaiting_join += 1
        member.joining = joining.reply
        group.update_member(member, joining.protocols)
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms
        member.session_timeout_ms = joining.request.session_timeout_ms
