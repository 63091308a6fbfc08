"""Groups that are about to move from one protocol to the other, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups.classic_members.classic_member import (
    ClassicMember,
    assignment_of,
)
from tests.coordinator.consumer_groups.consumer_harness import AT_ONCE, Member, consumer_harness

if TYPE_CHECKING:
    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from tests.coordinator.harness import Harness

TOPIC = "orders"
PARTITIONS = 6
DELAY_MS = 1_000


def classic_group(
    size: int, settings: ConsumerGroupSettings = AT_ONCE, instance_id: str | None = None
) -> tuple[Harness, list[ClassicMember]]:
    """A stable classic group, whose members share the partitions of a topic."""
    harness = consumer_harness(settings, orders=PARTITIONS)
    members = [ClassicMember(harness, [TOPIC], instance_id) for _ in range(size)]
    rejoin_all(harness, members)
    return harness, members


def rejoin_all(harness: Harness, members: list[ClassicMember]) -> None:
    """Rejoin all members; the first of them, their leader, assigns."""
    inboxes = [member.ask_to_join() for member in members]
    while any(inbox.is_parked for inbox in inboxes):
        harness.advance(DELAY_MS)
    for member, inbox in zip(members, inboxes, strict=True):
        assert member.joined(inbox) is ErrorCode.NONE
    share = PARTITIONS // len(members)
    [leader_id] = {inbox.response.leader for inbox in inboxes}
    shares = {
        member.member_id: assignment_of(orders=list(range(i * share, (i + 1) * share)))
        for i, member in enumerate(members)
    }
    [leader] = [member for member in members if member.member_id == leader_id]
    harness.sync(leader.member_id, leader.generation, shares)
    for member in members:
        assert member.sync() is ErrorCode.NONE


def settle(*members: ClassicMember | Member) -> None:
    """Send heartbeats until no member changes."""
    for _ in range(4 * len(members) + 4):
        before = [(_epoch(each), dict(each.owned)) for each in members]
        for each in members:
            assert each.heartbeat() is ErrorCode.NONE
        if before == [(_epoch(each), each.owned) for each in members]:
            return
    raise AssertionError("the group does not settle")


def _epoch(member: ClassicMember | Member) -> int:
    return member.epoch if isinstance(member, Member) else member.generation
