"""Added partitions of an existing topic: their number and replicas. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.partitions.replica_assignment import check_replicas, continue_assignment
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.partitions.replica_assignment import Brokers, Choose, Placements
    from controller.znodes import Replicas, TopicAssignment


@dataclass(frozen=True, slots=True)
class PartitionGrowth:
    """More partitions for a topic."""

    topic: str
    total: int
    assignments: Sequence[Replicas] | None = None
    """Replicas of each added partition, if the client places them."""


def missing_partitions(growth: PartitionGrowth, current: TopicAssignment) -> int:
    """Return the number of partitions to add. Raises ApiError for an invalid total."""
    count = len(current.partitions)
    if current.adding_replicas or current.removing_replicas:
        raise ApiError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"Topic '{growth.topic}' has a reassignment in progress.",
        )
    if growth.total == count:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partitions.")
    if growth.total < count:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {count} partitions, "
            f"which is higher than the requested {growth.total}.",
        )
    return growth.total - count


def place_growth(
    growth: PartitionGrowth, current: TopicAssignment, brokers: Brokers, choose: Choose
) -> Placements:
    """Replicas of the added partitions: the client's, or a continued assignment.

    Raises ApiError INVALID_REPLICA_ASSIGNMENT.
    """
    if growth.assignments is None:
        added = growth.total - len(current.partitions)
        return continue_assignment(brokers, current.partitions, added, choose)
    return _checked_growth(growth.assignments, growth.total, current, brokers)


def _checked_growth(
    assignments: Sequence[Replicas], total: int, current: TopicAssignment, brokers: Brokers
) -> Placements:
    count = len(current.partitions)
    added = total - count
    if len(assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Growing by {added} partitions needs {added} assignments, not {len(assignments)}.",
        )
    factor = len(current.partitions[0])
    for partition, replicas in enumerate(assignments, count):
        if len(replicas) != factor:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The topic has {factor} replicas of each partition; "
                f"the assignment of partition {partition} has {len(replicas)}.",
            )
        check_replicas(partition, replicas, brokers)
        yield partition, replicas
