"""Members that keep their place by an instance id while they are away (KIP-345)."""

from __future__ import annotations

from typing import Protocol, TypeVar

from coordinator.modern_groups.epochs import STATIC_LEAVING_EPOCH
from protocol.errors import ApiError, ErrorCode


class StaticMember(Protocol):
    """A member as the owner of an instance id."""

    @property
    def member_id(self) -> str:
        """Its id."""

    @property
    def member_epoch(self) -> int:
        """The epoch that it is in."""


MemberT = TypeVar("MemberT", bound=StaticMember)


def check_instance(member: MemberT | None, member_id: str, instance_id: str) -> MemberT:
    """The static member, if it is still the one that asks; raises ApiError."""
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def check_released(member: StaticMember, member_id: str, instance_id: str) -> None:
    """Raise UNRELEASED_INSTANCE_ID unless the instance has left temporarily."""
    if member.member_epoch != STATIC_LEAVING_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {member.member_id} member.",
        )
