"""Member of a share group that sends a request, and its authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.authorization import is_allowed_on_group
from broker.share_partitions.share_sessions import Member
from controller.features.levels import SHARE_VERSION
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.requests.context import Context

LONGEST_MEMBER_ID = 36
"""Length of a UUID in full."""


def checked_member(context: Context, group_id: str | None, member_id: str | None) -> Member:
    """The member that a request names. Raises ApiError.

    Its membership is known to the group's coordinator only. A leader lets any client that may READ
    the group acquire records, as in Apache Kafka.
    """
    if context.broker.features.level(SHARE_VERSION) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no group id")
    if not is_allowed_on_group(context, AclOperation.READ, group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{member_id!r} is no member id")
    return Member(group_id, member_id)
