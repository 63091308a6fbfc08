"""Refusals that are the same for all kinds, in the words of Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sized

REJOIN: Final = "The member must abandon all its partitions and rejoin."


def refuse_request(message: str) -> NoReturn:
    """Raise INVALID_REQUEST."""
    raise ApiError(ErrorCode.INVALID_REQUEST, message)


def check_not_blank(value: str | None, message: str) -> None:
    """Raise INVALID_REQUEST for a text that is present but empty."""
    if value is not None and not value.strip():
        refuse_request(message)


def check_room(kind: str, members: Sized, limit: int) -> None:
    """Raise GROUP_MAX_SIZE_REACHED if a group of this kind takes no further member."""
    if len(members) >= limit:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The {kind} group has reached its maximum capacity of {limit} members.",
        )


def unknown_member(member_id: str, group_id: str) -> ApiError:
    """Return the error for a caller that is not a member."""
    return ApiError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def fenced_member(kind: str, epoch: int, known_epoch: int, detail: str = "") -> ApiError:
    """The error for a member that sends another epoch than its own."""
    relation = "greater" if epoch > known_epoch else "smaller"
    return ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {relation} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({known_epoch}){detail}. {REJOIN}",
    )
