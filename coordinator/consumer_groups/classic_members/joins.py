"""JoinGroup of a member in a consumer group: the classic protocol's way of one heartbeat."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from coordinator.consumer_groups.classic_members.downgrade import (
    Downgrade,
    Downgraded,
    downgrade_records,
    is_due_for,
)
from coordinator.consumer_groups.classic_members.embedded_protocol import (
    owned_as_in_heartbeats,
    read_subscription,
)
from coordinator.consumer_groups.classic_members.upgrade import classic_metadata
from coordinator.consumer_groups.heartbeats.heartbeat import Beat
from coordinator.consumer_groups.heartbeats.request import HeartbeatCaller, is_anything
from coordinator.consumer_groups.member import ConsumerMember
from coordinator.effects import Effects
from coordinator.groups.group import NO_MEMBER_ID
from coordinator.groups.join import MEMBER_ID_REQUIRED_SINCE
from coordinator.groups.responses import join_error
from coordinator.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from coordinator.modern_groups.epochs import JOINING_EPOCH
from coordinator.modern_groups.static_members import check_instance
from coordinator.storage_errors import storage_error
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from protocol.messages.group_membership import JoinGroupResponse
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.heartbeats.departures import Departures
    from coordinator.consumer_groups.heartbeats.heartbeat import Heartbeats
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.groups.join import Joining
    from protocol.messages.consumer_protocol import ConsumerProtocolSubscription

NO_PROTOCOL_IN_COMMON = "The member's protocols are not supported."


class ClassicJoins:
    """Decides on JoinGroup requests to the consumer groups of a shard."""

    def __init__(
        self,
        parts: ShardParts,
        heartbeats: Heartbeats,
        departures: Departures,
        downgraded: Callable[[Downgraded, int], Effects],
    ) -> None:
        """`downgraded` carries on with a group that has become a classic one."""
        self._parts = parts
        self._heartbeats = heartbeats
        self._departures = departures
        self._downgraded = downgraded

    def join(self, group: ConsumerGroup, joining: Joining) -> Effects:
        """Answer a JoinGroup once its changes are committed."""
        effects = Effects()
        try:
            response = self._join(group, joining, effects)
        except ApiError as error:
            refused = Effects()
            refused.answer(joining.reply, join_error(error.code))
            return refused
        effects.answer_when_committed(joining.reply, response, _refuse)
        return effects

    def _join(self, group: ConsumerGroup, joining: Joining, effects: Effects) -> JoinGroupResponse:
        request, caller = joining.request, joining.caller
        is_unknown = request.member_id == NO_MEMBER_ID
        member_id = self._parts.new_id() if is_unknown else request.member_id
        self._departures.check_room(group, member_id, request.group_instance_id)
        if not _supports(group, joining):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, NO_PROTOCOL_IN_COMMON)
        is_dynamic = request.group_instance_id is None
        if is_unknown and is_dynamic and caller.api_version >= MEMBER_ID_REQUIRED_SINCE:
            return join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        subscription = _subscription(joining)
        beat = Beat(
            ConsumerGroupHeartbeatRequest(
                group_id=group.group_id,
                member_id=member_id,
                member_epoch=JOINING_EPOCH,
                instance_id=request.group_instance_id,
                topic_partitions=owned_as_in_heartbeats(subscription, self._parts.topics),
            ),
            HeartbeatCaller(caller.client_id, caller.client_host, is_anything),
            group,
            effects,
            joining.now_ms,
        )
        member = self._member(beat, is_unknown=is_unknown)
        updated = _updated(member, joining, subscription)
        replaced = None if is_dynamic else group.static_member(request.group_instance_id or "")
        if is_due_for(group, replaced, self._parts.settings):
            stepped = self._downgrade(beat, member, updated)
        else:
            stepped = self._heartbeats.advance(beat, member, updated)
            self._watch(group, stepped, joining)
        assert stepped.classic is not None
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=stepped.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=stepped.classic.supported_protocols[0].name,
            leader=NO_MEMBER_ID,
            member_id=member_id,
            members=[],
        )

    def _member(self, beat: Beat, *, is_unknown: bool) -> ConsumerMember:
        """Return the member before this request; a new one if it joins."""
        group, member_id = beat.group, beat.request.member_id
        instance_id = beat.request.instance_id
        if instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        present = group.static_member(instance_id)
        if not is_unknown:
            return check_instance(present, member_id, instance_id)
        if present is None:
            return ConsumerMember(member_id)
        return self._heartbeats.give_place(beat, present, member_id)

    def _downgrade(
        self, beat: Beat, member: ConsumerMember, updated: ConsumerMember
    ) -> ConsumerMember:
        """Its predecessor was the last that spoke the consumer protocol."""
        group, effects, now_ms = beat.group, beat.effects, beat.now_ms
        noted = self._heartbeats.note(beat, member, updated)
        # As a classic group is stable, members are not asked later to revoke partitions.
        must_rebalance = group.assignment_epoch < noted.epoch or any(
            each.revoking for each in group.members.values()
        )
        if not must_rebalance:
            target = group.target_of(updated)
            updated = self._heartbeats.reconcile(
                beat, updated, group.assignment_epoch, target, has_changed=noted.has_changed
            )
        downgrade = Downgrade((), updated, must_rebalance)
        records, protocols = downgrade_records(group, downgrade, self._parts, now_ms)
        effects.records += records
        downgraded = Downgraded(group.group_id, protocols, must_rebalance)
        effects.on_replayed = partial(self._downgraded, downgraded)
        return updated

    def _watch(self, group: ConsumerGroup, member: ConsumerMember, joining: Joining) -> None:
        watches, group_id = self._parts.watches, group.group_id
        watches.end_join(group_id, member.member_id)
        watches.touch(group_id, member.member_id, joining.request.session_timeout_ms)
        watches.await_sync(group_id, member)


def _supports(group: ConsumerGroup, joining: Joining) -> bool:
    """Return whether the member has a protocol in common with all other classic members."""
    return joining.request.protocol_type == CONSUMER_PROTOCOL_TYPE and any(
        group.classic_protocols[name] == group.classic_count for name, _ in joining.protocols
    )


def _subscription(joining: Joining) -> ConsumerProtocolSubscription:
    """Decode the member's subscription: it is the same for all its protocols."""
    try:
        return read_subscription(joining.protocols[0][1])
    except DecodeError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _updated(
    member: ConsumerMember, joining: Joining, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    request, caller = joining.request, joining.caller
    updated = replace(
        member,
        topics=frozenset(subscription.topics),
        pattern="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=classic_metadata(request.session_timeout_ms, joining.protocols),
    )
    if request.group_instance_id is not None:
        updated = replace(updated, instance_id=request.group_instance_id)
    if subscription.rack_id is not None:
        updated = replace(updated, rack_id=subscription.rack_id)
    if joining.rebalance_timeout_ms != -1:
        updated = replace(updated, rebalance_timeout_ms=joining.rebalance_timeout_ms)
    return updated


def _refuse(error: ErrorCode) -> JoinGroupResponse:
    return join_error(storage_error(error))
