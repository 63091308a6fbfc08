"""Assigns the replicas of new partitions to brokers. Pure; chance is an argument.

Goals, those of Kafka's AdminUtils: leaders spread evenly over brokers; the other replicas of the
partitions that one broker leads spread over all other brokers; with racks, the replicas of a
partition in as many racks as there can be.

Leaders go round the broker list from a random start. Follower j of a partition led by broker
`first` sits `1 + (shift + j) mod (n - 1)` places further on; `shift` starts at random and
grows by one each time the leaders have gone round. Five brokers, start 0, shift 0::

    partition   0  1  2  3  4 | 5  6  7  8  9
    leader      0  1  2  3  4 | 0  1  2  3  4
    follower 1  1  2  3  4  0 | 2  3  4  0  1
    follower 2  2  3  4  0  1 | 3  4  0  1  2

With racks the list takes brokers from each rack in turn, and a candidate is passed over while
another rack (or, once all racks are used, another broker) is still free.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from controller.znodes import Replicas

Brokers = Mapping[int, str | None]
"""Live brokers and their racks."""

Placements = Iterator[tuple[int, "Replicas"]]
"""Partitions and their replicas, one by one: callers may serve others in between."""

Choose = Callable[[int], int]
"""Chance: a number from 0 up to, not including, the argument."""


@dataclass(frozen=True, slots=True)
class AssignmentPlan:
    """The number of partitions to place, and the position to continue from."""

    partitions: int
    replication_factor: int
    first_partition: int = 0
    start: int | None = None
    """Place of partition 0's leader in the sorted broker list; None draws it, and the shift."""


def assign_replicas(brokers: Brokers, plan: AssignmentPlan, choose: Choose) -> Placements:
    """Place partitions on live brokers, given as id to rack. Raises ApiError before the first.

    Racks count only if every broker names one.
    """
    _check(brokers, plan)
    racks = _racks(brokers)
    arranged = sorted(brokers) if racks is None else _alternate_racks(racks)
    start = choose(len(arranged)) if plan.start is None else plan.start
    shift = choose(len(arranged)) if plan.start is None else plan.start
    ring = None if racks is None else _Ring(arranged, racks)
    for partition in range(plan.first_partition, plan.first_partition + plan.partitions):
        if partition > 0 and partition % len(arranged) == 0:
            shift += 1
        first = (partition + start) % len(arranged)
        if ring is None:
            yield partition, _spread(arranged, first, shift, plan.replication_factor)
        else:
            yield partition, ring.spread(first, shift, plan.replication_factor)


def continue_assignment(
    brokers: Brokers, existing: Mapping[int, Replicas], added: int, choose: Choose
) -> Placements:
    """Place more partitions of a topic, continuing the assignment of its partition 0."""
    head = existing[0]
    ids = sorted(brokers)
    start = ids.index(head[0]) if head[0] in brokers else 0
    plan = AssignmentPlan(added, len(head), len(existing), start)
    return assign_replicas(brokers, plan, choose)


def checked_assignment(assignment: Mapping[int, Replicas], brokers: Brokers) -> Placements:
    """A client's assignment, checked and sorted by partition.

    Raises ApiError at a gap, a repetition or an unknown broker.
    """
    missing = next((index for index in range(len(assignment)) if index not in assignment), None)
    if missing is not None:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(assignment)} partitions must be numbered from 0 without gaps, "
            f"and there is no partition {missing}.",
        )
    for partition in range(len(assignment)):
        replicas = assignment[partition]
        if not replicas or len(replicas) != len(assignment[0]):
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Every partition must have the same number of replicas, and at least one.",
            )
        check_replicas(partition, replicas, brokers)
        yield partition, replicas


def check_replicas(partition: int, replicas: Sequence[int], brokers: Brokers) -> None:
    """Raise ApiError if a partition's replica list repeats a broker or names a dead one."""
    seen: set[int] = set()
    for broker in replicas:
        if broker in seen:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {partition} names broker {broker} more than once.",
            )
        if broker not in brokers:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Partition {partition} names broker {broker}, which is unknown or not running; "
                f"live brokers are {sorted(brokers)}.",
            )
        seen.add(broker)


def _check(brokers: Brokers, plan: AssignmentPlan) -> None:
    if plan.replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if plan.partitions <= 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, "The number of partitions must be larger than 0."
        )
    if plan.replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor {plan.replication_factor} is larger than "
            f"the number of live brokers, {len(brokers)}.",
        )


def _racks(brokers: Brokers) -> dict[int, str] | None:
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    return racks if len(racks) == len(brokers) else None


def _follower_place(first: int, shift: int, follower: int, count: int) -> int:
    if count == 1:
        return first
    return (first + 1 + (shift + follower) % (count - 1)) % count


def _spread(arranged: list[int], first: int, shift: int, factor: int) -> Replicas:
    count = len(arranged)
    followers = (
        arranged[_follower_place(first, shift, follower, count)] for follower in range(factor - 1)
    )
    return (arranged[first], *followers)


def _alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Brokers in an order that takes one from each rack in turn."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    shelves = [by_rack[rack] for rack in sorted(by_rack)]
    rounds = zip_longest(*shelves)
    return [broker for turn in rounds for broker in turn if broker is not None]


class _Ring:
    """Brokers of all racks in turn, on which replicas go into other racks before other brokers."""

    def __init__(self, arranged: list[int], racks: Mapping[int, str]) -> None:
        self._arranged = arranged
        self._racks = racks
        self._rack_count = len(set(racks.values()))

    def spread(self, first: int, shift: int, factor: int) -> Replicas:
        """The leader and `factor - 1` followers; a skipped candidate may be considered again."""
        leader = self._arranged[first]
        chosen = {leader: None}
        used = {self._racks[leader]}
        candidates = self._candidates(first, shift)
        while len(chosen) < factor:
            broker = next(candidates)
            rack = self._racks[broker]
            if broker not in chosen and (rack not in used or len(used) == self._rack_count):
                chosen[broker] = None
                used.add(rack)
        return tuple(chosen)

    def _candidates(self, first: int, shift: int) -> Iterator[int]:
        """All brokers but the leader, round and round."""
        count = len(self._arranged)
        for follower in itertools.count():
            place = _follower_place(first, shift * self._rack_count, follower, count)
            yield self._arranged[place]
