"""Share groups as administration tools see them: ShareGroupDescribe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator.modern_groups import assignments
from protocol.errors import ErrorCode, shortened
from protocol.messages.share_groups import ShareGroupDescribeResponse

if TYPE_CHECKING:
    from collections.abc import Generator

    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.member import ShareMember
    from coordinator.topics import Topics

ASSIGNOR: Final = "simple"

DescribedGroup = ShareGroupDescribeResponse.Group
DescribedMember = ShareGroupDescribeResponse.Group.Member


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


def described(group: ShareGroup, topics: Topics) -> Generator[None, None, DescribedGroup]:
    """A group and its members, in steps; the members are those at the first step."""
    answer = DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[],
    )
    for member in list(group.members.values()):
        answer.members.append(_member(member, topics))
        yield
    return answer


def _member(member: ShareMember, topics: Topics) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=assignments.described(member.assigned, topics),
    )
