"""One step of a member towards its target assignment.

    STABLE ──the group has a newer target──▶ revokes partitions not in it (UNREVOKED_PARTITIONS)
      ▲                                            │ once it no longer owns them
      └──has all of it── takes free partitions ◀───┘ ⟲ UNRELEASED_PARTITIONS, until all are free

Worked example, topic t with two partitions. A is alone, at epoch 2, and owns t0 and t1. B joins:
the group is at epoch 3, the target is A {t0}, B {t1}.

    B heartbeats   epoch 3, nothing: t1 is A's          UNRELEASED_PARTITIONS
    A heartbeats   epoch 2, gets {t0}, must revoke t1   UNREVOKED_PARTITIONS
    A heartbeats   owns t0 only: epoch 3                STABLE, t1 is free
    B heartbeats   epoch 3, gets {t1}                   STABLE

Source: KIP-848, `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from coordinator.consumer_groups.group import NOBODY
from coordinator.consumer_groups.member import ConsumerMember, MemberState, Owned
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from coordinator.modern_groups.assignments import Target
    from protocol.messages.consumer_groups import TopicPartitions


class Surroundings(NamedTuple):
    """Inputs of a member's reconciliation."""

    target_epoch: int
    target: Target
    is_subscribed: Callable[[UUID], bool]
    """Returns whether the member subscribes to the topic of an id."""
    subscribes_to_nothing: bool
    has_subscription_changed: bool
    owner_epoch: Callable[[UUID, int], int]
    owned: Sequence[TopicPartitions] | None
    """Partitions that the member reports as owned; None if it does not report them."""


def reconciled(member: ConsumerMember, around: Surroundings) -> ConsumerMember:
    """The member after one step. Raises ApiError FENCED_MEMBER_EPOCH if it has to start over."""
    state = member.state
    if state is MemberState.STABLE:
        if member.member_epoch != around.target_epoch:
            return _next(member, member.member_epoch, around)
        return _trimmed(member, around) if around.has_subscription_changed else member
    if state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(around, member.revoking):
            return _trimmed(member, around) if around.has_subscription_changed else member
        return _next(member, member.member_epoch, around)
    if state is MemberState.UNRELEASED_PARTITIONS:
        return _next(member, member.member_epoch, around)
    if around.owned is None or around.owned:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its "
            "partitions and rejoin.",
        )
    return _next(member, around.target_epoch, around)


def _owns_any(around: Surroundings, partitions: Owned) -> bool:
    """Return whether the member may still own one of these: it reports so, or reports nothing."""
    if around.owned is None:
        return True
    return any(
        not partitions.get(topic.topic_id, {}).keys().isdisjoint(topic.partitions)
        for topic in around.owned
    )


def _trimmed(member: ConsumerMember, around: Surroundings) -> ConsumerMember:
    """Have a member give up topics it no longer subscribes to, before there is a new target."""
    assigned = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if not around.subscribes_to_nothing and around.is_subscribed(topic_id)
    }
    if len(assigned) == len(member.assigned):
        return member
    revoking: dict[UUID, Mapping[int, int]] = dict(member.revoking)
    for topic_id, partitions in member.assigned.items():
        if topic_id not in assigned:
            revoking[topic_id] = {**revoking.get(topic_id, {}), **partitions}
    if revoking and _owns_any(around, revoking):
        return _moved(
            member, MemberState.UNREVOKED_PARTITIONS, member.member_epoch, assigned, revoking
        )
    return replace(
        member,
        member_epoch=member.member_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
    )


def _next(member: ConsumerMember, epoch: int, around: Surroundings) -> ConsumerMember:
    assigned: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    free: dict[UUID, list[int]] = {}
    is_waiting = False
    for topic_id in {**around.target, **member.assigned}:
        target = around.target.get(topic_id, frozenset())
        if not around.is_subscribed(topic_id):
            target = frozenset()
        current = member.assigned.get(topic_id, {})
        kept = {index: at for index, at in current.items() if index in target}
        lost = {index: at for index, at in current.items() if index not in target}
        wanted = [index for index in target if index not in kept]
        own = member.revoking.get(topic_id, {})
        available = [
            index
            for index in wanted
            if index in own or around.owner_epoch(topic_id, index) == NOBODY
        ]
        is_waiting = is_waiting or len(available) < len(wanted)
        if kept:
            assigned[topic_id] = kept
        if lost:
            revoking[topic_id] = lost
        if available:
            free[topic_id] = available
    if revoking and _owns_any(around, revoking):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, assigned, revoking)
    for topic_id, indexes in free.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(indexes, around.target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return _moved(member, state, around.target_epoch, assigned, {})


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Owned, revoking: Owned
) -> ConsumerMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        revoking=revoking,
    )
