"""Share groups as administration tools see them: ListGroups and ShareGroupDescribe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, shortened
from protocol.messages.groups import ListGroupsResponse
from protocol.messages.share_groups import (
    ShareGroupDescribeAssignment,
    ShareGroupDescribeResponse,
    ShareGroupDescribeTopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.member import ShareMember
    from coordinator.topics import Topics

SHARE_TYPE: Final = "share"
ASSIGNOR: Final = "simple"

DescribedGroup = ShareGroupDescribeResponse.Group
DescribedMember = ShareGroupDescribeResponse.Group.Member


def listed(
    groups: Iterable[ShareGroup], states: Iterable[str], types: Iterable[str]
) -> Iterator[ListGroupsResponse.Group]:
    """Groups in one of `states` and `types`, ignoring case; an empty filter admits all."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {each.lower() for each in types}
    if wanted_types and SHARE_TYPE not in wanted_types:
        return
    for group in groups:
        state = group.state.value
        if not wanted_states or state.lower() in wanted_states:
            yield ListGroupsResponse.Group(
                group_id=group.group_id,
                protocol_type=SHARE_TYPE,
                group_state=state,
                group_type=SHARE_TYPE,
            )


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
        assignment=ShareGroupDescribeAssignment(
            topic_partitions=[
                ShareGroupDescribeTopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=sorted(partitions)
                )
                for topic_id, partitions in member.assigned.items()
                if (name := topics.name_of(topic_id)) is not None
            ]
        ),
    )
