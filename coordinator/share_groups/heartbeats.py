"""ShareGroupHeartbeat: joining, staying in and leaving a group, and its assignments.

Possible changes by a heartbeat, in order, each with its record:

    the member        new, or resubscribed
    the group epoch   if subscriptions changed, their topics, or the initialised partitions
    the target        if it is of an older epoch than the group's, and the last one is
                      `group.share.assignment.interval.ms` old
    the assignment    the member's part of the target
    the states        initialisation of partitions without subscribers before

Most heartbeats change nothing, and cost a few look-ups. Messages are those of Apache Kafka.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from coordinator.effects import Effects
from coordinator.modern_groups.assignments import assignment
from coordinator.modern_groups.checks import check_room
from coordinator.modern_groups.epochs import JOINING_EPOCH, LEAVING_EPOCH, NEVER_ASSIGNED_MS
from coordinator.modern_groups.topic_hashes import are_hashed_later
from coordinator.share_groups.checks import check_epoch, known_member
from coordinator.share_groups.group import are_alike, recount
from coordinator.share_groups.initialisation import (
    Initialisation,
    begin,
    initialising,
    start_offsets,
)
from coordinator.share_groups.member import ShareMember
from coordinator.share_groups.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    states_record,
    target_epoch_record,
)
from coordinator.share_groups.target import assign_later, assign_now, is_small
from coordinator.storage_errors import storage_error
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_groups import ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from coordinator.modern_groups.assignments import Target
    from coordinator.ports import Reply
    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.shard_parts import ShareParts
    from coordinator.share_groups.watches import ShareWatch
    from protocol.messages.share_groups import ShareGroupHeartbeatRequest


class ShareCaller(NamedTuple):
    """The client of a heartbeat, from its connection."""

    client_id: str
    client_host: str


class _Beat(NamedTuple):
    """One heartbeat of a member that stays or joins."""

    request: ShareGroupHeartbeatRequest
    caller: ShareCaller
    group: ShareGroup
    effects: Effects
    now_ms: int


def heartbeat_error(error: ApiError) -> ShareGroupHeartbeatResponse:
    """A refused heartbeat."""
    return ShareGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, member_epoch=0, heartbeat_interval_ms=0
    )


class ShareHeartbeats:
    """Decides on heartbeats for the share groups of a shard."""

    def __init__(
        self,
        parts: ShareParts,
        group_for: Callable[[ShareGroupHeartbeatRequest], ShareGroup],
    ) -> None:
        """`group_for` finds or makes the group of a request, or raises ApiError."""
        self._parts = parts
        self._group_for = group_for

    def heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        caller: ShareCaller,
        reply: Reply[ShareGroupHeartbeatResponse],
        now_ms: int,
    ) -> tuple[Effects, Initialisation | None]:
        """Decide on one heartbeat that passed its checks; returns also what to initialise."""
        effects = Effects()
        begun = None
        try:
            group = self._group_for(request)
            if request.member_epoch == LEAVING_EPOCH:
                response = self._leave(group, request, effects)
            else:
                beat = _Beat(request, caller, group, effects, now_ms)
                response, begun = self._stay(beat)
        except ApiError as error:
            refused = Effects()
            refused.answer(reply, heartbeat_error(error))
            return refused, None
        effects.answer_when_committed(reply, response, _not_stored)
        return effects, begun

    def _leave(
        self, group: ShareGroup, request: ShareGroupHeartbeatRequest, effects: Effects
    ) -> ShareGroupHeartbeatResponse:
        self.remove(group, [known_member(group, request)], effects)
        return ShareGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=0,
        )

    def remove(self, group: ShareGroup, members: Sequence[ShareMember], effects: Effects) -> None:
        """Remove members; the group goes to its next epoch."""
        names, group_id, watches = group.names.copy(), group.group_id, self._parts.watches
        for member in members:
            effects.records += member_tombstones(group_id, member.member_id)
            recount(names, member, None)
            watches.forget_member(group_id, member.member_id)
        member_ids = [member.member_id for member in members]
        effects.on_append_failed = partial(watches.not_removed, group_id, member_ids)
        metadata_hash = self._parts.hashes.of_group(names)
        epoch = group.epoch + 1
        effects.records.append(epoch_record(group_id, epoch, metadata_hash))
        if len(members) == len(group.members):
            effects.records.append(target_epoch_record(group_id, epoch, NEVER_ASSIGNED_MS))

    def _stay(self, beat: _Beat) -> tuple[ShareGroupHeartbeatResponse, Initialisation | None]:
        request, group, effects = beat.request, beat.group, beat.effects
        member = self._member(beat)
        updated = _updated(member, request, beat.caller)
        if updated != member or member.member_id not in group.members:
            effects.records.append(member_record(group.group_id, updated))
        names = group.names
        if updated.topics is not member.topics:
            names = names.copy()
            recount(names, member, updated)
        next_epoch, has_bumped = self._group_epoch(
            beat, names, must_bump=updated.topics != member.topics
        )
        target_epoch, target = self._target(beat, updated, next_epoch, names)
        stepped = self._reconcile(updated, target_epoch, target, has_changed=has_bumped)
        if stepped != updated:
            effects.records.append(current_record(group.group_id, stepped))
        self._parts.watches.touch(group.group_id, member.member_id)
        begun = self._begin(beat, names, next_epoch)
        tells_assignment = (
            request.member_epoch == JOINING_EPOCH
            or request.subscribed_topic_names is not None
            or stepped.assigned != member.assigned
            or request.member_epoch != member.member_epoch  # the response with it was lost
        )
        interval_ms = self._parts.settings.heartbeat_interval_of(group.group_id)
        return _success(stepped, interval_ms, tells_assignment=tells_assignment), begun

    def _member(self, beat: _Beat) -> ShareMember:
        """Return the member before this heartbeat; a new one if it joins. Raises ApiError."""
        request, group = beat.request, beat.group
        if request.member_id not in group.members:
            check_room("share", group.members, self._parts.settings.max_size)
        if request.member_epoch == JOINING_EPOCH:
            assert request.member_id is not None, "check_share_request"
            return group.members.get(request.member_id) or ShareMember(request.member_id)
        member = known_member(group, request)
        check_epoch(member, request.member_epoch)
        return member

    def _group_epoch(
        self, beat: _Beat, names: Counter[str], *, must_bump: bool
    ) -> tuple[int, bool]:
        """The group's epoch after this heartbeat, and whether it is a new one."""
        group, parts = beat.group, self._parts
        watch = parts.watches.of(group.group_id)
        revision = parts.topics.revision
        if group.assignment_epoch >= group.epoch:
            must_bump = must_bump or not self._is_covered(group, watch)
        has_expired = watch.checked_revision != revision or group.epoch < watch.checked_epoch
        if not must_bump and (
            not has_expired or are_hashed_later(parts.hashes, watch, group.names, beat.effects)
        ):
            return group.epoch, False
        metadata_hash = parts.hashes.of_group(names)
        epoch = group.epoch
        if must_bump or metadata_hash != group.metadata_hash:
            epoch += 1
            beat.effects.records.append(epoch_record(group.group_id, epoch, metadata_hash))
        watch.checked_revision, watch.checked_epoch = revision, epoch
        return epoch, epoch > group.epoch

    def _is_covered(self, group: ShareGroup, watch: ShareWatch) -> bool:
        """Return whether all initialised partitions of subscribed topics are assigned."""
        as_of = (self._parts.topics.revision, group.changes)
        if watch.covered_as_of == as_of or not group.members:
            return True
        assigned: dict[object, set[int]] = {}
        for target in group.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        for topic_id, each in group.states.initialised.items():
            is_wanted = each.name in group.names and self._parts.topics.name_of(topic_id)
            if is_wanted and assigned.get(topic_id, set()) != each.partitions:
                return False
        watch.covered_as_of = as_of
        return True

    def _target(
        self, beat: _Beat, updated: ShareMember, group_epoch: int, names: Counter[str]
    ) -> tuple[int, Target]:
        """The epoch of the target assignment after this heartbeat, and the member's part."""
        group, parts = beat.group, self._parts
        last = group.assignment_epoch, group.target_of(updated.member_id)
        if group.assignment_epoch >= group_epoch:
            return last
        watch = parts.watches.of(group.group_id)
        interval_ms = parts.settings.assignment_interval_of(group.group_id)
        if watch.is_assigning or group.was_assigned_within(interval_ms, beat.now_ms):
            return last
        if not is_small(group):
            watch.is_assigning = True
            beat.effects.jobs.append(assign_later(parts, group.group_id, beat.now_ms))
            return last
        count = len(group.members) + (updated.member_id not in group.members)
        alike = are_alike(names, count)
        target = assign_now(parts, group, (group_epoch, updated, alike), beat.effects, beat.now_ms)
        return group_epoch, target

    def _reconcile(
        self, member: ShareMember, target_epoch: int, target: Target, *, has_changed: bool
    ) -> ShareMember:
        if target_epoch == member.member_epoch and not has_changed:
            return member
        name_of = self._parts.topics.name_of
        assigned = {
            topic_id: partitions
            for topic_id, partitions in target.items()
            if name_of(topic_id) in member.topics
        }
        if target_epoch == member.member_epoch:
            return replace(member, assigned=assigned)
        return replace(
            member,
            assigned=assigned,
            member_epoch=target_epoch,
            previous_member_epoch=member.member_epoch,
        )

    def _begin(self, beat: _Beat, names: Counter[str], epoch: int) -> Initialisation | None:
        group = beat.group
        begun = begin(self._parts, group, names)
        if not begun:
            return None
        states = initialising(group.states, begun)
        beat.effects.records.append(states_record(group.group_id, states))
        return Initialisation(group.group_id, epoch, start_offsets(begun))


def _updated(
    member: ShareMember, request: ShareGroupHeartbeatRequest, caller: ShareCaller
) -> ShareMember:
    """Return the member with the fields of the request; null fields mean no change."""
    topics = member.topics
    if request.subscribed_topic_names is not None:
        wanted = frozenset(request.subscribed_topic_names)
        topics = topics if wanted == topics else wanted
    rack_id = member.rack_id if request.rack_id is None else request.rack_id
    return replace(
        member,
        rack_id=rack_id,
        topics=topics,
        client_id=caller.client_id,
        client_host=caller.client_host,
    )


def _success(
    member: ShareMember, interval_ms: int, *, tells_assignment: bool
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment(member.assigned) if tells_assignment else None,
    )


def _not_stored(error: ErrorCode) -> ShareGroupHeartbeatResponse:
    return heartbeat_error(ApiError(storage_error(error)))
