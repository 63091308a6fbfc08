"""Selection of partition leaders. Pure functions of assignment, state and live brokers.

All of them go through the assignment in its order, so that the preferred leader wins whenever it
may. A result with `leader == NO_LEADER` means that no replica can lead; None, that this kind of
election changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.znodes import NO_LEADER, Replicas

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True, slots=True)
class Choice:
    """Outcome of an election."""

    leader: int
    in_sync_replicas: Replicas
    is_unclean: bool = False


def initial_leader(replicas: Replicas, live: Collection[int]) -> Choice | None:
    """New partition: the first live replica leads, all live replicas are in sync."""
    in_sync = tuple(replica for replica in replicas if replica in live)
    return Choice(in_sync[0], in_sync) if in_sync else None


def leader_when_offline(
    replicas: Replicas, in_sync: Replicas, live: Collection[int], *, allow_unclean: bool
) -> Choice | None:
    """No leader: the first live replica in sync; failing that, if allowed, the first live one.

    An unclean leader is alone in sync: records of the others beyond its log are lost (KIP-101).
    """
    for replica in replicas:
        if replica in live and replica in in_sync:
            return Choice(replica, tuple(r for r in in_sync if r in live))
    if allow_unclean:
        for replica in replicas:
            if replica in live:
                return Choice(replica, (replica,), is_unclean=True)
    return None


def preferred_leader(replicas: Replicas, in_sync: Replicas, live: Collection[int]) -> Choice | None:
    """The head of the assignment, if it is live and in sync."""
    head = replicas[0]
    return Choice(head, in_sync) if head in live and head in in_sync else None


def leader_when_moving(
    target: Replicas, leader: int, in_sync: Replicas, live: Collection[int]
) -> Choice | None:
    """The leader if it is a target replica, else the first of those that is live and in sync."""
    for replica in (leader, *target):
        if replica in target and replica in live and replica in in_sync:
            return Choice(replica, in_sync)
    return None


def leader_when_shutting_down(
    replicas: Replicas, in_sync: Replicas, live: Collection[int], leaving: Collection[int]
) -> Choice | None:
    """The first live replica in sync that stays; those shutting down leave the in-sync set."""
    staying = tuple(replica for replica in in_sync if replica not in leaving)
    for replica in replicas:
        if replica in live and replica in staying:
            return Choice(replica, staying)
    return None


def without_replica(leader: int, in_sync: Replicas, gone: int) -> Choice:
    """Without a removed replica as leader and in the in-sync set, unless it is the last member.

    The last one stays, because only it may be elected cleanly when it returns.
    """
    remaining = tuple(replica for replica in in_sync if replica != gone) or in_sync
    return Choice(NO_LEADER if leader == gone else leader, remaining)
