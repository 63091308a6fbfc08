"""Replaces a static member by its next incarnation (KIP-345, KAFKA-8405, KAFKA-9270).

The old member id is fenced from then on, its parked replies at once. In a STABLE group that would
choose the same protocol, only the new id is stored; the assignment stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.effects import Effects
from coordinator.groups.group import NO_MEMBER_ID
from coordinator.groups.responses import (
    group_storage_error,
    join_error,
    join_success,
    sync_error,
)
from coordinator.groups.states import GroupState
from coordinator.records import generation_record
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.join import Joining
    from coordinator.groups.member import Member, Protocols
    from coordinator.groups.rebalance import Rebalance
    from protocol.messages.group_membership import JoinGroupResponse

SKIP_ASSIGNMENT_SINCE = 9


class _Incarnation(NamedTuple):
    """The attributes of a member that change when its client restarts."""

    member_id: str
    client_id: str
    client_host: str
    protocols: Protocols
    rebalance_timeout_ms: int
    session_timeout_ms: int


class StaticMembers:
    """Replaces static members in the groups of a shard."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def take_over(
        self, group: ClassicGroup, joining: Joining, new_member_id: str, effects: Effects
    ) -> None:
        """Replace the member of a known instance id, whose client joins without a member id."""
        instance_id = joining.request.group_instance_id
        assert instance_id is not None
        member = group.members[group.static_members[instance_id]]
        old_leader_id = group.leader_id
        before = _incarnation(member)
        self._fence(group, member, effects)
        self._install(
            group,
            member,
            _Incarnation(
                member_id=new_member_id,
                client_id=joining.caller.client_id,
                client_host=joining.caller.client_host,
                protocols=joining.protocols,
                rebalance_timeout_ms=joining.rebalance_timeout_ms,
                session_timeout_ms=joining.request.session_timeout_ms,
            ),
        )
        if group.state is GroupState.STABLE and group.select_protocol() == group.protocol:
            self._store(group, member, joining, old_leader_id, effects)
            effects.on_append_failed = self._undo(group, member, before)
            return
        group.awaiting_join += 1
        member.joining = joining.reply
        self._rebalance.prepare(group, joining.now_ms, effects)

    def _fence(self, group: ClassicGroup, member: Member, effects: Effects) -> None:
        if member.joining is not None:
            fenced = join_error(ErrorCode.FENCED_INSTANCE_ID, member.member_id)
            effects.answer(member.joining, fenced)
            group.awaiting_join -= 1
        if member.syncing is not None:
            effects.answer(member.syncing, sync_error(ErrorCode.FENCED_INSTANCE_ID))
        member.joining = member.syncing = None

    def _install(self, group: ClassicGroup, member: Member, incarnation: _Incarnation) -> None:
        assert member.group_instance_id is not None
        self._rebalance.forget_session(group, member.member_id)
        group.rename_static_member(member.group_instance_id, incarnation.member_id)
        group.update_member(member, incarnation.protocols)
        member.client_id = incarnation.client_id
        member.client_host = incarnation.client_host
        member.rebalance_timeout_ms = incarnation.rebalance_timeout_ms
        member.session_timeout_ms = incarnation.session_timeout_ms
        self._rebalance.restart_session(group, member)

    @staticmethod
    def _store(
        group: ClassicGroup,
        member: Member,
        joining: Joining,
        old_leader_id: str | None,
        effects: Effects,
    ) -> None:
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        effects.records.append(generation_record(group, assignments, joining.now_ms))
        response = join_success(group, member)
        if joining.caller.api_version >= SKIP_ASSIGNMENT_SINCE:
            response.skip_assignment = group.leader_id == member.member_id
        else:
            # A leader that finds its former id as the leader's does not assign again.
            response.leader = old_leader_id or NO_MEMBER_ID
            response.members = []
        effects.answer_when_committed(joining.reply, response, _refuse)

    def _undo(
        self, group: ClassicGroup, member: Member, before: _Incarnation
    ) -> Callable[[ErrorCode, int], Effects]:
        def undo(_: ErrorCode, __: int) -> Effects:
            self._install(group, member, before)
            return Effects()

        return undo


def _incarnation(member: Member) -> _Incarnation:
    return _Incarnation(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        protocols=member.protocols,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
    )


def _refuse(error: ErrorCode) -> JoinGroupResponse:
    return join_error(group_storage_error(error))
