"""What is wrong with a ShareGroupHeartbeat, before and after its member is looked up.

Messages are those of Apache Kafka, as clients show them to their users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from coordinator.share_groups.member import JOINING_EPOCH, LEAVING_EPOCH
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.member import ShareMember
    from protocol.messages.share_groups import ShareGroupHeartbeatRequest

LONGEST_MEMBER_ID = 36
"""Characters of a UUID in text form."""
REJOIN = "The member must abandon all its partitions and rejoin."


def is_member_id(text: str | None) -> bool:
    """Whether a client may have this member id: a UUID in text form, or as long at most."""
    return bool(text) and len(text or "") <= LONGEST_MEMBER_ID


def check_share_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raise ApiError for a request that is wrong whatever the group is like."""
    if not (request.member_id or "").strip():
        _refuse("MemberId can't be empty.")
    if not request.group_id.strip():
        _refuse("GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        _refuse("RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH:
        if not request.subscribed_topic_names:
            _refuse("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVING_EPOCH:
        _refuse("MemberEpoch is invalid.")


def _refuse(message: str) -> NoReturn:
    raise ApiError(ErrorCode.INVALID_REQUEST, message)


def known_member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member that asks. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(request.member_id or "")
    if member is None:
        raise ApiError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    return member


def check_epoch(member: ShareMember, epoch: int) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the member is in the epoch that it says.

    One behind is right as well: the answer that brought the next one may have been lost.
    """
    if epoch in (member.member_epoch, member.previous_member_epoch):
        return
    if epoch > member.member_epoch:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by "
            f"the group coordinator ({member.member_epoch}). {REJOIN}",
        )
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a smaller member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.member_epoch}), and it does not match the previous member "
        f"epoch ({member.previous_member_epoch}). {REJOIN}",
    )
