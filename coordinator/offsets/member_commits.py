"""Checks of commits and reads of a group's offsets, by member epochs.

A commit may be of an earlier epoch than the member's, because it may have been in flight while the
member advanced; but not of an epoch before the member got the partition. Without a member id and an
epoch, a commit is accepted while the group has no members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coordinator.modern_groups.checks import unknown_member
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinator.modern_groups.group_kind import CommittedPartition, Committing

MEMBER_EPOCH_SINCE = 9
"""The version of OffsetCommit from which on it has member epochs."""
KNOWS_GROUP_ERRORS_SINCE = 6
"""The version of TxnOffsetCommit from which on clients know GROUP_ID_NOT_FOUND and
STALE_MEMBER_EPOCH (KIP-1319)."""


class CommittingMember(Protocol):
    """A member as its commits need it."""

    @property
    def member_epoch(self) -> int:
        """The epoch that it is in."""

    @property
    def is_classic(self) -> bool:
        """True if it speaks the classic protocol."""


MemberT = TypeVar("MemberT", bound=CommittingMember)


class CommittingGroup(Protocol[MemberT]):
    """A group as the commits of its members need it."""

    @property
    def group_id(self) -> str:
        """Its id."""

    @property
    def members(self) -> dict[str, MemberT]:
        """Members by id."""

    def assigned_since(self, member: MemberT, committed: CommittedPartition, /) -> int | None:
        """The epoch in which a member got a partition; None if it does not own it."""


def check_commit(
    group: CommittingGroup[MemberT],
    who: Committing,
    api_version: int,
    partitions: Callable[[], Iterable[CommittedPartition]],
) -> None:
    """Raise ApiError unless the commit of `partitions` is to be stored."""
    if who.epoch < 0 and not group.members:
        return
    member = _member(group, who.member_id)
    if not member.is_classic and api_version < MEMBER_EPOCH_SINCE:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members of groups with member epochs",
        )
    _check_epoch(group, member, who.epoch, partitions)


def check_transactional_commit(
    group: CommittingGroup[MemberT],
    who: Committing,
    api_version: int,
    partitions: Callable[[], Iterable[CommittedPartition]],
) -> None:
    """As `check_commit`, for TxnOffsetCommit; before v6 a stale epoch is ILLEGAL_GENERATION."""
    if who.epoch < 0 and not group.members:
        return
    if who.epoch == -1 and not who.member_id and who.instance_id is None:
        return
    try:
        _check_epoch(group, _member(group, who.member_id), who.epoch, partitions)
    except ApiError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH and api_version < KNOWS_GROUP_ERRORS_SINCE:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION) from None
        raise


def check_fetch(group: CommittingGroup[Any], member_id: str | None, epoch: int) -> None:
    """Raise ApiError unless offsets may be read; tools and old clients name no member."""
    if member_id is None and epoch < 0:
        return
    member = _member(group, member_id or "")
    if member.member_epoch != epoch:
        raise _stale(
            member,
            f"The received member epoch {epoch} does not match the expected member epoch "
            f"{member.member_epoch}.",
        )


def _member(group: CommittingGroup[MemberT], member_id: str) -> MemberT:
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(member_id, group.group_id)
    return member


def _check_epoch(
    group: CommittingGroup[MemberT],
    member: MemberT,
    epoch: int,
    partitions: Callable[[], Iterable[CommittedPartition]],
) -> None:
    if epoch == member.member_epoch:
        return
    if epoch > member.member_epoch:
        raise _stale(
            member,
            f"Received member epoch {epoch} is newer than current member epoch "
            f"{member.member_epoch}.",
        )
    for committed in partitions():
        since = group.assigned_since(member, committed)
        if since is None or epoch < since:
            raise _stale(
                member,
                f"Received member epoch {epoch} is older than the assignment of partition "
                f"{committed.partition}, or the partition is not assigned to the member.",
            )


def _stale(member: CommittingMember, message: str) -> ApiError:
    is_classic = member.is_classic
    code = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
    return ApiError(code, message)
