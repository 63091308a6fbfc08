"""Checks of a ShareGroupHeartbeat, before and after its member is looked up.

Messages are those of Apache Kafka, as clients show them to their users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.modern_groups.checks import (
    check_not_blank,
    fenced_member,
    refuse_request,
    unknown_member,
)
from coordinator.modern_groups.epochs import JOINING_EPOCH, LEAVING_EPOCH

if TYPE_CHECKING:
    from coordinator.share_groups.group import ShareGroup
    from coordinator.share_groups.member import ShareMember
    from protocol.messages.share_groups import ShareGroupHeartbeatRequest

LONGEST_MEMBER_ID = 36
"""Characters of a UUID in text form."""


def is_member_id(text: str | None) -> bool:
    """Return whether a client may have this member id: a UUID in text form, or as long at most."""
    return bool(text) and len(text or "") <= LONGEST_MEMBER_ID


def check_share_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raise ApiError for a request that is invalid regardless of the group."""
    if not (request.member_id or "").strip():
        refuse_request("MemberId can't be empty.")
    check_not_blank(request.group_id, "GroupId can't be empty.")
    check_not_blank(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH:
        if not request.subscribed_topic_names:
            refuse_request("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVING_EPOCH:
        refuse_request("MemberEpoch is invalid.")


def known_member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member that asks. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(request.member_id or "")
    if member is None:
        raise unknown_member(request.member_id, group.group_id)
    return member


def check_epoch(member: ShareMember, epoch: int) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the request has the member's epoch.

    One behind is right as well: the answer that brought the next one may have been lost.
    """
    if epoch in (member.member_epoch, member.previous_member_epoch):
        return
    detail = ""
    if epoch < member.member_epoch:
        previous = member.previous_member_epoch
        detail = f", and it does not match the previous member epoch ({previous})"
    raise fenced_member("share", epoch, member.member_epoch, detail)
