"""Groups of the kinds whose members commit offsets: all but share groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coordinator.modern_groups.kind_shard import KindGroup, KindShard, MemberT
from coordinator.offsets.member_commits import (
    CommittingGroup,
    check_commit,
    check_fetch,
    check_transactional_commit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinator.modern_groups.group_kind import CommittedPartition, Committing

AnyMemberT = TypeVar("AnyMemberT", bound=Any)


class CommittingKindGroup(KindGroup[AnyMemberT], CommittingGroup[AnyMemberT], Protocol):
    """A group as its commits need it as well."""


GroupT = TypeVar("GroupT", bound=CommittingKindGroup[Any])


class CommittingShard(KindShard[GroupT, MemberT]):
    """Checks of commits and reads of offsets, for all kinds that have offsets."""

    def check_commit(
        self,
        group_id: str,
        who: Committing,
        api_version: int,
        partitions: Callable[[], Iterable[CommittedPartition]],
    ) -> None:
        """Raise ApiError unless an OffsetCommit is to be stored."""
        check_commit(self._group(group_id), who, api_version, partitions)

    def check_transactional_commit(
        self,
        group_id: str,
        who: Committing,
        api_version: int,
        partitions: Callable[[], Iterable[CommittedPartition]],
    ) -> None:
        """Raise ApiError unless a TxnOffsetCommit is to be stored."""
        check_transactional_commit(self._group(group_id), who, api_version, partitions)

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless positions may be read."""
        check_fetch(self._group(group_id), member_id, member_epoch)
