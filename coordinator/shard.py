"""One partition of `__consumer_offsets` as a state machine: the entry point of all group requests.

`handle_*` and `expire` decide, `replay` changes the stored state. The broker appends the records of
an `Effects`, replays them here one by one, then gives the answers; after a restart it replays the
log and calls `on_loaded`. Nothing here waits: a reply that must wait is parked in its member.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from coordinator import deletion
from coordinator.consumer_groups.settings import MigrationPolicy
from coordinator.effects import Effects
from coordinator.groups import listing
from coordinator.groups.group import NO_MEMBER_ID
from coordinator.groups.join import REBALANCE_TIMEOUT_SINCE, Caller, Joining, Joins
from coordinator.groups.membership import Membership
from coordinator.groups.responses import join_error, sync_error
from coordinator.groups.states import GroupEvent, GroupState
from coordinator.groups.sync import Syncs
from coordinator.modern_groups.group_kind import CommittedPartition, Committing
from coordinator.offsets import offset_reads
from coordinator.offsets.offset_commits import OffsetCommits
from coordinator.offsets.transactional_commits import TransactionalCommits
from coordinator.ports import TimerKind
from coordinator.shard_state import ShardState
from protocol.errors import ApiError, ErrorCode
from protocol.messages.group_membership import LeaveGroupResponse

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from coordinator.ports import MemberIds, Reply, TimerKey, Timers
    from coordinator.records import OffsetsRecord
    from coordinator.settings import GroupSettings
    from coordinator.topics import Topics
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


class GroupShard(ShardState):
    """The groups whose ids hash to one partition."""

    def __init__(
        self, settings: GroupSettings, timers: Timers, new_id: MemberIds, topics: Topics
    ) -> None:
        super().__init__(settings, timers, new_id, topics)
        self._joins = Joins(settings, timers, new_id, self._rebalance)
        self._syncs = Syncs(self._rebalance)
        self._membership = Membership(self._rebalance)
        self._commits = OffsetCommits(settings, self._rebalance)
        self._transactional_commits = TransactionalCommits(settings)

    # Life

    def on_loaded(self, now_ms: int) -> Effects:
        """Start members' sessions and shrink too large groups, once the log has been replayed.

        Groups whose coordinator died before it could rebalance them are rebalanced.
        """
        effects = Effects()
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalance.restart_session(group, member)
            if len(group.members) > self._settings.max_size or group.is_downgraded:
                self._rebalance.prepare(group, now_ms, effects)
        for kind in self._kinds:
            kind.on_loaded()
        return effects

    def on_unloaded(self) -> Effects:
        """Answer all parked requests, as the shard moves to another broker or this one stops."""
        effects = Effects()
        error = ErrorCode.NOT_COORDINATOR
        for group in self._groups.values():
            if group.state is GroupState.EMPTY and not group.pending_members:
                continue  # most groups of a large shard: no parked request, and no timer
            self._rebalance.cancel_timers(group)
            for member in group.members.values():
                if member.joining is not None:
                    effects.answer(member.joining, join_error(error, member.member_id))
                if member.syncing is not None:
                    effects.answer(member.syncing, sync_error(error))
                member.joining = member.syncing = None
            group.enter(GroupEvent.REMOVED, group.state_since_ms)
        self._groups.clear()
        for kind in self._kinds:
            kind.on_unloaded()
        return effects

    # Membership

    def handle_change_to_classic(self, group_id: str) -> list[OffsetsRecord]:
        """Delete an empty group of another kind, because a member joins it as a classic group.

        Raises ApiError INCONSISTENT_GROUP_PROTOCOL if it has members, unless it is a consumer group
        that accepts members of the classic protocol.
        """
        kind = self._kind_of(group_id)
        if kind is None:
            return []
        if kind is self.shares or kind.has_members(group_id):
            migration = self._settings.consumer.migration
            if kind is self.consumers and migration is not MigrationPolicy.DISABLED:
                return []
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the {kind.name} group {group_id} with the classic protocol because "
                "the group migration is disabled.",
            )
        return kind.tombstones(group_id)

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
        consumers = self.consumers.groups.find(request.group_id)
        is_known = request.group_id in self._groups or consumers is not None
        if error is ErrorCode.NONE and not is_known and member_id != NO_MEMBER_ID:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            effects.answer(reply, join_error(error, member_id))
            return effects
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
        if consumers is not None:
            return self.consumers.joins.join(consumers, joining)
        group = self._group(request.group_id)
        self._joins.join(group, joining, effects)
        self._drop_if_vestigial(group)
        return effects

    def handle_sync(
        self, request: SyncGroupRequest, reply: Reply[SyncGroupResponse], now_ms: int
    ) -> Effects:
        """Answer or park a SyncGroup; the leader's stores the generation."""
        consumers = self.consumers.groups.find(request.group_id)
        if consumers is not None:
            return self.consumers.classic_requests.sync(consumers, request, reply)
        group = self._groups.get(request.group_id)
        if group is None:
            effects = Effects()
            effects.answer(reply, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
            return effects
        return self._syncs.sync(group, request, reply, now_ms)

    def handle_heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Keep a session alive."""
        consumers = self.consumers.groups.find(request.group_id)
        if consumers is not None:
            return self.consumers.classic_requests.heartbeat(consumers, request)
        group = self._groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._membership.heartbeat(group, request)

    def handle_leave(
        self, group_id: str, members: Sequence[LeaveGroupRequest.Member], now_ms: int
    ) -> tuple[list[LeaveGroupResponse.Member], Effects]:
        """Remove members one by one; each has its own error."""
        consumers = self.consumers.groups.find(group_id)
        if consumers is not None:
            return self.consumers.classic_requests.leave(consumers, members, now_ms)
        effects = Effects()
        group = self._groups.get(group_id)
        if group is None:
            return [_left_unknown(member) for member in members], effects
        left = [self._membership.leave(group, member, now_ms, effects) for member in members]
        self._drop_if_vestigial(group)
        return left, effects

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """A timer went off. One that is out of date does nothing."""
        for kind in self._kinds:
            if key.kind in kind.timers:
                return kind.expire(key, now_ms)
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
        kind = self._kind_of(request.group_id)
        if kind is None:
            group = self._groups.get(request.group_id)
            return self._commits.commit(group, request, api_version, reply, now_ms)
        who = Committing(
            request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
        )
        try:
            partitions = partial(self._partitions_of, request.topics)
            kind.check_commit(request.group_id, who, api_version, partitions)
        except ApiError as error:
            return self._commits.refuse(request, error.code, reply)
        return self._commits.store(request, reply, now_ms)

    def handle_transactional_commit(
        self,
        request: TxnOffsetCommitRequest,
        api_version: int,
        reply: Reply[TxnOffsetCommitResponse],
        now_ms: int,
    ) -> Effects:
        """Store positions that count once the producer's transaction is committed.

        The caller has filled in topic names (version 6 sends ids).
        """
        kind = self._kind_of(request.group_id)
        if kind is None:
            group = self._groups.get(request.group_id)
            return self._transactional_commits.commit(group, request, api_version, reply, now_ms)
        who = Committing(
            request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
        )
        try:
            partitions = partial(self._partitions_of, request.topics)
            kind.check_transactional_commit(request.group_id, who, api_version, partitions)
        except ApiError as error:
            return self._transactional_commits.refuse(request, error.code, reply)
        return self._transactional_commits.store(request, reply, now_ms)

    def _partitions_of(
        self, topics: Sequence[OffsetCommitRequest.Topic | TxnOffsetCommitRequest.Topic]
    ) -> Iterator[CommittedPartition]:
        for topic in topics:
            view = self._topics.find(topic.name)
            topic_id = None if view is None else view.topic_id
            for each in topic.partitions:
                yield CommittedPartition(topic.name, topic_id, each.partition_index)

    def check_offset_fetch(self, request: OffsetFetchRequest.Group) -> None:
        """Raise ApiError if a caller that is no longer a member asks for offsets."""
        kind = self._kind_of(request.group_id)
        if kind is not None:
            kind.check_fetch(request.group_id, request.member_id, request.member_epoch)

    def handle_offset_fetch(
        self, request: OffsetFetchRequest.Group, *, require_stable: bool = False
    ) -> Generator[None, None, OffsetFetchResponse.Group]:
        """Read positions, in steps. True once the shard's log is committed up to here."""
        return offset_reads.fetch(self._offsets, request, require_stable=require_stable)

    def handle_offset_delete(
        self, request: OffsetDeleteRequest
    ) -> tuple[OffsetDeleteResponse, list[OffsetsRecord]]:
        """Forget positions of topics that no member consumes."""
        kind = self._kind_of(request.group_id)
        if kind is not None and kind is not self.shares:
            topics = kind.consumed_topics(request.group_id)
            return deletion.delete_unsubscribed(request, topics, self._offsets)
        group = self._groups.get(request.group_id)
        return deletion.delete_offsets(group, request, self._offsets)

    def handle_topics_deleted(
        self, topics: Collection[str], log_end: int
    ) -> Iterator[list[OffsetsRecord]]:
        """Forget positions in topics that were deleted when the log ended there.

        One list of tombstones for each group, to be appended at each step. What stands later in the
        log is of new topics of the same names.
        """
        for group_id in self._offsets.group_ids:
            places = self._offsets.places_before(group_id, topics, log_end)
            group = self._groups.get(group_id)
            yield deletion.delete_places(group_id, places, group, self._offsets)

    def expire_offsets(self, group_id: str, now_ms: int) -> list[OffsetsRecord]:
        """Tombstones for the group's expired offsets, and for the group if none is left."""
        retention_ms = self._settings.offsets_retention_ms
        kind = self._kind_of(group_id)
        if kind is self.shares:
            return []
        if kind is not None:
            return deletion.expire_unconsumed(group_id, kind, self._offsets, retention_ms, now_ms)
        group = self._groups.get(group_id)
        if group is None:
            return []
        return deletion.expire_offsets(group, self._offsets, retention_ms, now_ms)

    # Groups as tools see them

    def handle_list(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """Groups in one of `states` and of one of `types`; an empty filter lets all pass.

        The groups are those at the first step; others may be added or removed before the last.
        """
        return chain(
            listing.listed(list(self._groups.values()), states, types),
            *(kind.listed(states, types) for kind in self._kinds),
        )

    def handle_describe(self, group_id: str, api_version: int) -> DescribeGroupsResponse.Group:
        """One classic group and its members."""
        is_other = self._kind_of(group_id) is not None
        return listing.described(
            group_id, self._groups.get(group_id), api_version, is_of_another_kind=is_other
        )

    def handle_delete_group(self, group_id: str) -> tuple[ErrorCode, list[OffsetsRecord]]:
        """Forget a group that has no members."""
        kind = self._kind_of(group_id)
        if kind is None:
            return deletion.delete_group(self._groups.get(group_id), self._offsets)
        if kind.has_members(group_id):
            return ErrorCode.NON_EMPTY_GROUP, []
        tombstones = deletion.offsets_at(group_id, self._offsets.places_of(group_id))
        return ErrorCode.NONE, tombstones + kind.tombstones(group_id)


def _left_unknown(member: LeaveGroupRequest.Member) -> LeaveGroupResponse.Member:
    return LeaveGroupResponse.Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )
