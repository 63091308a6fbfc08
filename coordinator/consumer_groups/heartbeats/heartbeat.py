"""ConsumerGroupHeartbeat: joining, staying in and leaving a group, and its assignments.

Possible changes by a heartbeat, in order, each with its record:

    the member        new, replaced (a static member's next incarnation), or resubscribed
    the group epoch   if subscriptions changed, the topics that they name, or the assignor that
                      most members prefer
    the target        if it is of an older epoch than the group's, and the last one is
                      `group.consumer.assignment.interval.ms` old
    the assignment    one step towards the target (`reconciliation`)

Most heartbeats change nothing, and cost a few look-ups.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from coordinator.consumer_groups.group import (
    ConsumerGroup,
    preferred_assignor,
    recount,
    recount_assignors,
    rematch,
)
from coordinator.consumer_groups.heartbeats.checks import (
    check_epoch,
)
from coordinator.consumer_groups.heartbeats.regular_expressions import (
    PatternChange,
    RegularExpressions,
)
from coordinator.consumer_groups.heartbeats.request import HeartbeatCaller, is_full, updated_member
from coordinator.consumer_groups.heartbeats.responses import (
    heartbeat_error,
    heartbeat_success,
    refuse,
)
from coordinator.consumer_groups.member import ConsumerMember, MemberState
from coordinator.consumer_groups.reconciliation import Surroundings, reconciled
from coordinator.consumer_groups.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_record,
    topics_tombstone,
)
from coordinator.consumer_groups.target import Change, assign_later, assign_now, is_small
from coordinator.effects import Effects
from coordinator.modern_groups.checks import unknown_member
from coordinator.modern_groups.epochs import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from coordinator.modern_groups.static_members import check_instance, check_released
from coordinator.modern_groups.topic_hashes import are_hashed_later
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from coordinator.consumer_groups.heartbeats.departures import Departures
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.modern_groups.assignments import Target
    from coordinator.ports import Reply
    from protocol.messages.consumer_groups import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )


class Beat(NamedTuple):
    """One heartbeat of a member that stays or joins, or the like in the classic protocol."""

    request: ConsumerGroupHeartbeatRequest
    caller: HeartbeatCaller
    group: ConsumerGroup
    effects: Effects
    now_ms: int


class Noted(NamedTuple):
    """Changes of the group by a heartbeat, but for assignments."""

    epoch: int
    """The group's."""
    are_alike: bool
    """True if all members subscribe to the same topics."""
    has_changed: bool
    """True if the member's subscription has changed."""


class Heartbeats:
    """Decides on heartbeats for the consumer groups of a shard."""

    def __init__(
        self,
        parts: ShardParts,
        group_for: Callable[[ConsumerGroupHeartbeatRequest, Effects], ConsumerGroup],
        departures: Departures,
    ) -> None:
        """`group_for` finds or makes the group of a request, or raises ApiError."""
        self._parts = parts
        self._group_for = group_for
        self._patterns = RegularExpressions(parts)
        self._departures = departures

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply: Reply[ConsumerGroupHeartbeatResponse],
        now_ms: int,
    ) -> Effects:
        """Decide on one heartbeat that passed `check_request`."""
        effects = Effects()
        try:
            group = self._group_for(request, effects)
            if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
                response = self._departures.leave(group, request, effects, now_ms)
            else:
                response = self._stay(Beat(request, caller, group, effects, now_ms))
        except ApiError as error:
            refused = Effects()
            refused.answer(reply, heartbeat_error(error))
            return refused
        effects.answer_when_committed(reply, response, refuse)
        return effects

    def _stay(self, beat: Beat) -> ConsumerGroupHeartbeatResponse:
        request, group = beat.request, beat.group
        self._departures.check_room(group, request.member_id, request.instance_id)
        member_id = request.member_id or self._parts.new_id()
        member = self._member(beat, member_id)
        updated = updated_member(member, request, beat.caller)
        stepped = self.advance(beat, member, updated)
        self._parts.watches.touch(group.group_id, member_id)
        tells_assignment = (
            request.member_epoch == JOINING_EPOCH
            or is_full(request)
            or stepped.assigned != member.assigned
        )
        interval_ms = self._parts.settings.heartbeat_interval_of(group.group_id)
        return heartbeat_success(stepped, interval_ms, tells_assignment=tells_assignment)

    def advance(
        self, beat: Beat, member: ConsumerMember, updated: ConsumerMember
    ) -> ConsumerMember:
        """Store the member's changes, and take it one step towards its target."""
        noted = self.note(beat, member, updated)
        target_epoch, target = self._target(
            beat, member, updated, noted.epoch, are_alike=noted.are_alike
        )
        return self.reconcile(beat, updated, target_epoch, target, has_changed=noted.has_changed)

    def note(self, beat: Beat, member: ConsumerMember, updated: ConsumerMember) -> Noted:
        """Store the member's changes, and the group's next epoch if it must change."""
        group, effects = beat.group, beat.effects
        if updated != member:
            effects.records.append(member_record(group.group_id, updated))
        changed_names = updated.topics != member.topics
        change = self._patterns.change(
            group, member, updated, beat.caller.may_describe, effects, beat.now_ms
        )
        has_changed = changed_names or change is not PatternChange.NONE
        is_settled = change is PatternChange.RESOLVED or updated.classic is not None
        must_bump = (
            changed_names
            or (has_changed and is_settled)
            or (updated.classic is None and self._prefer_another(group, member, updated))
        )
        epoch, are_alike = self._group_epoch(beat, member, updated, must_bump=must_bump)
        return Noted(epoch, are_alike, has_changed)

    def _member(self, beat: Beat, member_id: str) -> ConsumerMember:
        """Return the member before this heartbeat; a new one if it joins."""
        request, group = beat.request, beat.group
        joins = request.member_epoch == JOINING_EPOCH
        instance_id = request.instance_id
        if instance_id is None:
            member = group.members.get(member_id)
            if member is None:
                if not joins:
                    raise unknown_member(member_id, group.group_id)
                return ConsumerMember(member_id)
            check_epoch(member, request)
            return member
        present = group.static_member(instance_id)
        if not joins:
            member = check_instance(present, member_id, instance_id)
            check_epoch(member, request)
            return member
        if present is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if present.classic is None:
            check_released(present, member_id, instance_id)
        return self.give_place(beat, present, member_id)

    def give_place(self, beat: Beat, present: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give the place of a static member to its next incarnation."""
        group_id, records = beat.group.group_id, beat.effects.records
        successor = replace(
            present, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=0
        )
        records += member_tombstones(group_id, present.member_id)
        records.append(member_record(group_id, successor))
        records.append(target_record(group_id, member_id, beat.group.target_of(present)))
        records.append(current_record(group_id, successor))
        self._parts.watches.forget_member(group_id, present.member_id)
        return successor

    def _group_epoch(
        self,
        beat: Beat,
        member: ConsumerMember,
        updated: ConsumerMember,
        *,
        must_bump: bool,
    ) -> tuple[int, bool]:
        """The group's epoch after this heartbeat, and whether all subscribe to the same topics."""
        group, effects, parts = beat.group, beat.effects, self._parts
        watch = parts.watches.of(group.group_id)
        subscriptions = group.subscriptions
        revision = parts.topics.revision
        has_expired = watch.checked_revision != revision or group.epoch < watch.checked_epoch
        if not must_bump and (
            not has_expired or are_hashed_later(parts.hashes, watch, subscriptions.topics, effects)
        ):
            return group.epoch, subscriptions.are_alike(len(group.members))
        if updated != member:
            subscriptions = subscriptions.copy()
            recount(subscriptions, member, updated)
            old = member.pattern
            if old and old not in subscriptions.patterns:
                rematch(subscriptions, group.resolved.get(old), None)
        metadata_hash = parts.hashes.of_group(subscriptions.topics)
        epoch = group.epoch
        if must_bump or metadata_hash != group.metadata_hash:
            epoch += 1
            effects.records.append(epoch_record(group.group_id, epoch, metadata_hash))
        watch.checked_revision, watch.checked_epoch = revision, epoch
        if group.has_topics_record:
            effects.records.append(topics_tombstone(group.group_id))
        is_new = updated.member_id not in group.members and self._replaced(group, updated) is None
        return epoch, subscriptions.are_alike(len(group.members) + is_new)

    @staticmethod
    def _replaced(group: ConsumerGroup, updated: ConsumerMember) -> ConsumerMember | None:
        instance_id = updated.instance_id
        return None if instance_id is None else group.static_member(instance_id)

    def _target(
        self,
        beat: Beat,
        member: ConsumerMember,
        updated: ConsumerMember,
        group_epoch: int,
        *,
        are_alike: bool,
    ) -> tuple[int, Target]:
        """The epoch of the target assignment after this heartbeat, and the member's part."""
        group, parts = beat.group, self._parts
        last = group.assignment_epoch, group.target_of(updated)
        if group.assignment_epoch >= group_epoch:
            return last
        watch = parts.watches.of(group.group_id)
        interval_ms = parts.settings.assignment_interval_of(group.group_id)
        if watch.is_assigning or group.was_assigned_within(interval_ms, beat.now_ms):
            return last
        assignor = self._assignor(group, member, updated)
        topics = group.subscriptions.topics | group.subscribed_topics(updated)
        if not is_small(parts, group, topics):
            watch.is_assigning = True
            beat.effects.jobs.append(assign_later(parts, group.group_id, assignor, beat.now_ms))
            return last
        replaced = self._replaced(group, updated)
        replaced_id = None if replaced is None else replaced.member_id
        change = Change(group_epoch, are_alike, assignor, updated, replaced_id)
        return group_epoch, assign_now(parts, group, change, beat.effects, beat.now_ms)

    def _prefer_another(
        self, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember
    ) -> bool:
        """Return whether this heartbeat changes the assignor that most members prefer."""
        if updated.assignor == member.assignor:
            return False
        return self._assignor(group, member, updated) != self._assignor(group, member, member)

    def _assignor(
        self, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember
    ) -> str:
        """Return the assignor that most members prefer, if configured; else the first one."""
        configured = self._parts.settings.assignors
        counts = group.assignors.copy()
        recount_assignors(counts, member, updated)
        preferred = preferred_assignor(counts)
        return preferred if preferred in configured else configured[0]

    def reconcile(
        self,
        beat: Beat,
        member: ConsumerMember,
        target_epoch: int,
        target: Target,
        *,
        has_changed: bool,
    ) -> ConsumerMember:
        """Take a member one step towards its target."""
        if not has_changed and member.is_reconciled_to(target_epoch):
            return member
        group, topics, watches = beat.group, self._parts.topics, self._parts.watches
        subscribed = group.subscribed_topics(member)

        def is_subscribed(topic_id: UUID) -> bool:
            return topics.name_of(topic_id) in subscribed

        stepped = reconciled(
            member,
            Surroundings(
                target_epoch=target_epoch,
                target=target,
                is_subscribed=is_subscribed,
                subscribes_to_nothing=not subscribed,
                has_subscription_changed=has_changed,
                owner_epoch=group.owner_epoch,
                owned=beat.request.topic_partitions,
            ),
        )
        if stepped == member:
            if must_revoke(member):
                watches.resume_revocation(group.group_id, member)
            return member
        beat.effects.records.append(current_record(group.group_id, stepped))
        if must_revoke(stepped):
            watches.await_revocation(group.group_id, stepped)
        else:
            watches.end_revocation(group.group_id, stepped.member_id)
        return stepped


def must_revoke(member: ConsumerMember) -> bool:
    """Return whether its revocations are awaited; a classic member has to join for them."""
    return member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None
