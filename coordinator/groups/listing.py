"""Groups as administration tools see them: ListGroups and DescribeGroups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.states import GroupState
from coordinator.modern_groups import listing
from protocol.errors import ErrorCode, shortened
from protocol.messages.groups import DescribeGroupsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coordinator.groups.group import ClassicGroup
    from protocol.messages.groups import ListGroupsResponse

CLASSIC_TYPE = "classic"
ERROR_SINCE = 6

Described = DescribeGroupsResponse.Group
DescribedMember = DescribeGroupsResponse.Group.Member


def listed(
    groups: Iterable[ClassicGroup], states: Iterable[str], types: Iterable[str]
) -> Iterator[ListGroupsResponse.Group]:
    """Groups in one of `states` and `types`, ignoring case; an empty filter admits all."""
    typed = ((group, group.protocol_type or "") for group in groups)
    return listing.listed(typed, CLASSIC_TYPE, states, types)


def described(
    group_id: str, group: ClassicGroup | None, api_version: int, *, is_of_another_kind: bool = False
) -> Described:
    """A group and its members; protocol and subscriptions only while it is STABLE."""
    if group is None:
        is_error = api_version >= ERROR_SINCE
        reason = "is not a classic group" if is_of_another_kind else "not found"
        return Described(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
            error_message=shortened(f"Group {group_id} {reason}.") if is_error else None,
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            protocol_type="",
            protocol_data="",
            members=[],
        )
    is_stable = group.state is GroupState.STABLE
    protocol = group.protocol or ""
    return Described(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol if is_stable else "",
        members=[
            DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata_for(protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
