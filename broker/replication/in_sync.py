"""Replicas in sync with their leader, and the offset that all of them have (KIP-497, KIP-966).

The set changes in two steps: the leader proposes, the controller commits. Until then a replica that
joins counts already, and one that leaves counts still, so that the high watermark holds under
either outcome (the *maximal* set).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from broker.replication.effects import Proposal
from broker.replication.followers import UNKNOWN, Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState


NO_FOLLOWERS: Final[Mapping[int, Follower]] = {}
SETS_KEPT: Final = 4096


@lru_cache(maxsize=SETS_KEPT)
def _members(in_sync: tuple[int, ...]) -> tuple[tuple[int, ...], frozenset[int]]:
    """The same objects for all partitions with the same replicas in sync."""
    return in_sync, frozenset(in_sync)


class InSyncReplicas:
    """The in-sync set of a partition and, on its leader, the progress of its followers."""

    __slots__ = ("_max_lag_ms", "committed", "followers", "local_id", "maximal", "proposal")

    def __init__(self, local_id: int, max_lag_ms: int) -> None:
        self.local_id = local_id
        self._max_lag_ms = max_lag_ms
        self.followers: Mapping[int, Follower] = NO_FOLLOWERS
        """By broker id; empty unless this broker leads."""
        self.committed: tuple[int, ...] = ()
        """As the controller has stored it."""
        self.maximal: frozenset[int] = frozenset()
        """All that count: a commit needs each of them."""
        self.proposal: Proposal | None = None
        """In-sync set sent to the controller and not yet answered."""

    def lead(
        self, state: LeaderAndIsrPartitionState, now_ms: int, leader_end: int, *, is_new_epoch: bool
    ) -> None:
        """Take over the controller's replicas and in-sync set.

        If leader epoch or in-sync set differ from the known ones, the outstanding proposal is
        dropped. If the controller repeats the same state, it stays: it may be stored by now.
        """
        others = [one for one in state.replicas if one != self.local_id]
        known = self.followers
        self.followers = {one: known.get(one) or Follower(one) for one in others}
        for one, follower in self.followers.items():
            if is_new_epoch or one not in known:
                follower.start_over(now_ms, leader_end, is_in_sync=one in state.isr)
        if is_new_epoch or tuple(state.isr) != self.committed:
            self.settle(state.isr)

    def stop_leading(self, in_sync: Iterable[int]) -> None:
        """Forget the progress of followers: another broker leads, or there are none."""
        self.followers = NO_FOLLOWERS
        self.settle(in_sync)

    def settle(self, in_sync: Iterable[int]) -> None:
        """Take over the stored set; nothing is proposed any more."""
        self.committed, self.maximal = _members(tuple(in_sync))
        self.proposal = None

    def propose(
        self, in_sync: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> Proposal:
        """Note a set proposed to the controller."""
        self.maximal = frozenset(self.committed) | frozenset(in_sync)
        lives = tuple(
            self.followers[one].broker_epoch if one in self.followers else UNKNOWN
            for one in in_sync
        )
        self.proposal = Proposal(in_sync, leader_epoch, partition_epoch, lives)
        return self.proposal

    def replicated_up_to(
        self, leader_end: int, now_ms: int, is_alive: Callable[[int], bool]
    ) -> int:
        """Offset that all counting replicas have: the bound of the high watermark.

        A live replica that has caught up counts before it joins, so that it can catch up for good.
        """
        end = leader_end
        for one, follower in self.followers.items():
            if follower.log_end_offset < end and (
                one in self.maximal
                or (follower.is_caught_up(leader_end, now_ms, self._max_lag_ms) and is_alive(one))
            ):
                end = follower.log_end_offset
        return end

    def all_have(self, offset: int) -> bool:
        """Return whether each follower that counts has all records before `offset`."""
        followers = self.followers
        return all(
            followers[one].log_end_offset >= offset for one in self.maximal if one in followers
        )

    def grown(
        self, broker_id: int, high_watermark: int, epoch_start: int
    ) -> tuple[int, ...] | None:
        """The set with a follower that has reached the others; None when it has not, or is in.

        It must have all that is committed, and all from before this leader's epoch.
        """
        follower = self.followers.get(broker_id)
        if (
            self.proposal is not None
            or follower is None
            or broker_id in self.committed
            or follower.log_end_offset < max(high_watermark, epoch_start)
        ):
            return None
        return (*self.committed, broker_id)

    def shrunk(self, leader_end: int, now_ms: int) -> tuple[int, ...] | None:
        """The set without the followers that are too far behind; None when there is none."""
        if self.proposal is not None:
            return None
        left = self._without_laggards(self.committed, leader_end, now_ms)
        return None if len(left) == len(self.committed) else left

    def _without_laggards(
        self, members: Sequence[int], leader_end: int, now_ms: int
    ) -> tuple[int, ...]:
        return tuple(
            one
            for one in members
            if one == self.local_id
            or (
                (follower := self.followers.get(one)) is not None
                and follower.is_caught_up(leader_end, now_ms, self._max_lag_ms)
            )
        )
