"""Consumer groups as administration tools see them: ConsumerGroupDescribe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups.group import preferred_assignor
from coordinator.modern_groups import assignments
from coordinator.modern_groups.assignments import NOTHING
from protocol.errors import ErrorCode, shortened
from protocol.messages.consumer_groups import ConsumerGroupDescribeResponse

if TYPE_CHECKING:
    from collections.abc import Generator
    from uuid import UUID

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember
    from coordinator.modern_groups.assignments import Target
    from coordinator.topics import Topics

DescribedGroup = ConsumerGroupDescribeResponse.Group
DescribedMember = ConsumerGroupDescribeResponse.Group.Member
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def not_described(group_id: str, error: ErrorCode, message: str | None) -> DescribedGroup:
    """A group that cannot be described."""
    return DescribedGroup(
        error_code=error,
        error_message=None if message is None else shortened(message),
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def described(
    group: ConsumerGroup, topics: Topics, default_assignor: str
) -> Generator[None, None, DescribedGroup]:
    """A group and its members, in steps; the members are those at the first step."""
    answer = DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.assignors) or default_assignor,
        members=[],
    )
    targets = group.targets
    for member in list(group.members.values()):
        answer.members.append(_member(member, targets.get(member.member_id, NOTHING), topics))
        yield
    return answer


def _member(member: ConsumerMember, target: Target, topics: Topics) -> DescribedMember:
    owned: dict[UUID, list[int]] = {}
    for source in (member.assigned, member.revoking):
        for topic_id, partitions in source.items():
            owned.setdefault(topic_id, []).extend(partitions)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        assignment=assignments.described(owned, topics),
        target_assignment=assignments.described(target, topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )
