"""One partition of `__consumer_offsets` as a state machine: all requests of its groups end here.

`handle_*` and `expire` decide, `replay` changes what is stored. The broker appends the records of
an `Effects`, replays them here one by one, then gives the answers; after a restart it replays the
log and calls `on_loaded`. Nothing here waits: a reply that must wait is parked in its member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coordinator import deletion
from coordinator.effects import Effects
from coordinator.groups import listing
from coordinator.groups.group import NO_MEMBER_ID, ClassicGroup
from coordinator.groups.join import REBALANCE_TIMEOUT_SINCE, Caller, Joining, Joins
from coordinator.groups.membership import Membership
from coordinator.groups.rebalance import Rebalance
from coordinator.groups.responses import join_error, sync_error
from coordinator.groups.states import GroupEvent
from coordinator.groups.sync import Syncs
from coordinator.offsets import offset_reads
from coordinator.offsets.offset_commits import OffsetCommits
from coordinator.offsets.offset_store import NO_PRODUCER, OffsetStore
from coordinator.offsets.transactional_commits import TransactionalCommits
from coordinator.ports import TimerKind
from protocol.errors import ErrorCode
from protocol.messages.consumer_offsets_records import OffsetCommitKey
from protocol.messages.group_membership import LeaveGroupResponse

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from coordinator.ports import MemberIds, Reply, TimerKey, Timers
    from coordinator.records import OffsetsRecord
    from coordinator.settings import GroupSettings
    from protocol.messages.consumer_offsets_records import GroupMetadataValue, OffsetCommitValue
    from protocol.messages.group_membership import (
        HeartbeatRequest,
        JoinGroupRequest,
        JoinGroupResponse,
        LeaveGroupRequest,
        SyncGroupRequest,
        SyncGroupResponse,
    )
    from protocol.messages.groups import DescribeGroupsResponse, ListGroupsResponse
    from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from protocol.messages.offset_fetch import (
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        OffsetFetchRequest,
        OffsetFetchResponse,
    )
    from protocol.messages.txn_offset_commit import (
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
    )


class GroupShard:
    """The groups whose ids hash to one partition."""

    def __init__(self, settings: GroupSettings, timers: Timers, new_id: MemberIds) -> None:
        self._settings = settings
        self._groups: dict[str, ClassicGroup] = {}
        self._offsets = OffsetStore()
        self._rebalance = Rebalance(settings, timers)
        self._joins = Joins(settings, timers, new_id, self._rebalance)
        self._syncs = Syncs(self._rebalance)
        self._membership = Membership(self._rebalance)
        self._commits = OffsetCommits(settings, self._rebalance)
        self._transactional_commits = TransactionalCommits(settings)

    @property
    def group_ids(self) -> Collection[str]:
        """All groups, those with nothing but offsets too."""
        return self._groups.keys()

    def find(self, group_id: str) -> ClassicGroup | None:
        """One group; read only."""
        return self._groups.get(group_id)

    # Replay

    def replay(
        self, record: OffsetsRecord, log_offset: int = 0, producer_id: int = NO_PRODUCER
    ) -> None:
        """Apply one record of the log, freshly appended or read back.

        `producer_id` is that of a transactional batch, whose positions wait for its marker.
        """
        key = record.key
        if isinstance(key, OffsetCommitKey):
            if record.value is None:
                self._offsets.remove(key)
                self._drop_if_vestigial(self._groups.get(key.group))
            else:
                value = cast("OffsetCommitValue", record.value)
                self._offsets.put(key, value, log_offset, producer_id)
                self._group(key.group)
        elif record.value is None:
            self._drop_group(key.group)
            if self._offsets.has_any(key.group):
                self._group(key.group)
        else:
            self._group(key.group).restore(cast("GroupMetadataValue", record.value))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a marker of the log: the producer's pending positions become final or go."""
        self._offsets.end_transaction(producer_id, is_commit=is_commit)

    def on_loaded(self, now_ms: int) -> Effects:
        """The log has been replayed: members' sessions begin, too large groups shrink."""
        effects = Effects()
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalance.restart_session(group, member, now_ms)
            if len(group.members) > self._settings.max_size:
                self._rebalance.prepare(group, now_ms, effects)
        return effects

    def on_unloaded(self) -> Effects:
        """The shard goes to another broker, or this one stops: everybody parked is sent away."""
        effects = Effects()
        error = ErrorCode.NOT_COORDINATOR
        for group in self._groups.values():
            self._rebalance.cancel_timers(group)
            for member in group.members.values():
                if member.joining is not None:
                    effects.answer(member.joining, join_error(error, member.member_id))
                if member.syncing is not None:
                    effects.answer(member.syncing, sync_error(error))
                member.joining = member.syncing = None
            group.enter(GroupEvent.REMOVED, group.state_since_ms)
        self._groups.clear()
        return effects

    # Membership

    def handle_join(
        self,
        request: JoinGroupRequest,
        caller: Caller,
        reply: Reply[JoinGroupResponse],
        now_ms: int,
    ) -> Effects:
        """Answer or park a JoinGroup."""
        effects = Effects()
        member_id = request.member_id
        error = self._joins.session_error(request.session_timeout_ms)
        group = self._groups.get(request.group_id)
        if error is ErrorCode.NONE and group is None and member_id != NO_MEMBER_ID:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            effects.answer(reply, join_error(error, member_id))
            return effects
        group = self._group(request.group_id)
        has_rebalance_timeout = caller.api_version >= REBALANCE_TIMEOUT_SINCE
        joining = Joining(
            request=request,
            caller=caller,
            reply=reply,
            protocols=tuple((each.name, each.metadata) for each in request.protocols),
            rebalance_timeout_ms=(
                request.rebalance_timeout_ms
                if has_rebalance_timeout
                else request.session_timeout_ms
            ),
            now_ms=now_ms,
        )
        self._joins.join(group, joining, effects)
        self._drop_if_vestigial(group)
        return effects

    def handle_sync(
        self, request: SyncGroupRequest, reply: Reply[SyncGroupResponse], now_ms: int
    ) -> Effects:
        """Answer or park a SyncGroup; the leader's stores the generation."""
        group = self._groups.get(request.group_id)
        if group is None:
            effects = Effects()
            effects.answer(reply, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
            return effects
        return self._syncs.sync(group, request, reply, now_ms)

    def handle_heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        """Keep a session alive."""
        group = self._groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._membership.heartbeat(group, request, now_ms)

    def handle_leave(
        self, group_id: str, members: Sequence[LeaveGroupRequest.Member], now_ms: int
    ) -> tuple[list[LeaveGroupResponse.Member], Effects]:
        """Remove members one by one; each has its own error."""
        effects = Effects()
        group = self._groups.get(group_id)
        if group is None:
            return [_left_unknown(member) for member in members], effects
        left = [self._membership.leave(group, member, now_ms, effects) for member in members]
        self._drop_if_vestigial(group)
        return left, effects

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """A timer went off. One that is out of date does nothing."""
        effects = Effects()
        group = self._groups.get(key.group_id)
        if group is None:
            return effects
        if key.kind is TimerKind.JOIN:
            self._rebalance.on_join_timer(group, now_ms, effects)
        elif key.kind is TimerKind.SYNC:
            self._rebalance.on_sync_timer(group, now_ms, effects)
        else:
            self._rebalance.on_session_timer(group, key.member_id, now_ms, effects)
        self._drop_if_vestigial(group)
        return effects

    # Offsets

    def handle_offset_commit(
        self,
        request: OffsetCommitRequest,
        api_version: int,
        reply: Reply[OffsetCommitResponse],
        now_ms: int,
    ) -> Effects:
        """Store positions. The caller has filled in topic names (version 10 sends ids)."""
        group = self._groups.get(request.group_id)
        return self._commits.commit(group, request, api_version, reply, now_ms)

    def handle_transactional_commit(
        self,
        request: TxnOffsetCommitRequest,
        reply: Reply[TxnOffsetCommitResponse],
        now_ms: int,
    ) -> Effects:
        """Store positions that count once the producer's transaction is committed."""
        group = self._groups.get(request.group_id)
        return self._transactional_commits.commit(group, request, reply, now_ms)

    def handle_offset_fetch(
        self, request: OffsetFetchRequest.Group, *, require_stable: bool = False
    ) -> Generator[None, None, OffsetFetchResponse.Group]:
        """Read positions, in steps. True once the shard's log is committed up to here."""
        return offset_reads.fetch(self._offsets, request, require_stable=require_stable)

    def handle_offset_delete(
        self, request: OffsetDeleteRequest
    ) -> tuple[OffsetDeleteResponse, list[OffsetsRecord]]:
        """Forget positions of topics that no member consumes."""
        group = self._groups.get(request.group_id)
        return deletion.delete_offsets(group, request, self._offsets)

    def handle_topics_deleted(self, topics: Collection[str]) -> Iterator[list[OffsetsRecord]]:
        """Forget positions in deleted topics; one list of tombstones for each group."""
        for group_id in self._offsets.groups_with(topics):
            group = self._groups.get(group_id)
            if group is not None:
                yield deletion.delete_topics(group, topics, self._offsets)

    def expire_offsets(self, group_id: str, now_ms: int) -> list[OffsetsRecord]:
        """Tombstones for the group's expired offsets, and for the group if none is left."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        retention_ms = self._settings.offsets_retention_ms
        return deletion.expire_offsets(group, self._offsets, retention_ms, now_ms)

    # Groups as tools see them

    def handle_list(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """Groups in one of `states` and of one of `types`; an empty filter lets all pass.

        The groups are those at the first step; others may be added or removed before the last.
        """
        return listing.listed(list(self._groups.values()), states, types)

    def handle_describe(self, group_id: str, api_version: int) -> DescribeGroupsResponse.Group:
        """One group and its members."""
        return listing.described(group_id, self._groups.get(group_id), api_version)

    def handle_delete_group(self, group_id: str) -> tuple[ErrorCode, list[OffsetsRecord]]:
        """Forget a group that has no members."""
        return deletion.delete_group(self._groups.get(group_id), self._offsets)

    def _group(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = ClassicGroup(group_id)
        return group

    def _drop_group(self, group_id: str) -> None:
        group = self._groups.pop(group_id, None)
        if group is not None:
            self._rebalance.cancel_timers(group)
            group.enter(GroupEvent.REMOVED, group.state_since_ms)

    def _drop_if_vestigial(self, group: ClassicGroup | None) -> None:
        if group is None or not group.is_vestigial:
            return
        if not self._offsets.has_any(group.group_id):
            self._drop_group(group.group_id)


def _left_unknown(member: LeaveGroupRequest.Member) -> LeaveGroupResponse.Member:
    return LeaveGroupResponse.Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )
