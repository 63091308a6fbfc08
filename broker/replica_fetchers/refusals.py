"""Partitions that a fetcher cannot follow: logged once for each reason, and once when it is over.

A refused partition is fetched again each `replica.fetch.backoff.ms`, perhaps for days.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.partitions.partition import Partition
    from protocol.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

NAMES_IN_A_LINE: Final = 3
"""Number of refused partitions named in the log line of one reason."""


class Refusals:
    """Refusals of one leader. `tell` logs those of an answer, in one line for each reason."""

    def __init__(self, leader_id: int) -> None:
        self._leader_id = leader_id
        self.reasons: dict[Partition, ErrorCode] = {}
        """Reason for each partition that is not followed now; readable from outside."""
        self.has_news = False
        """True if `tell` has anything to log."""
        self._refused: dict[ErrorCode, list[Partition]] = {}
        self._resumed: list[Partition] = []

    def note(self, partition: Partition, code: ErrorCode) -> None:
        """The leader refuses it."""
        if self._is_new(partition, code):
            self._refused.setdefault(code, []).append(partition)
            self.has_news = True

    def note_failure(self, partition: Partition, error: ApiError) -> None:
        """Note an answer of the leader that cannot be applied."""
        if self._is_new(partition, error.code):
            logger.error("%s cannot be followed: %s", _name(partition), error)

    def resume(self, partition: Partition) -> None:
        """Note that a partition is followed, whether or not it was before."""
        if self.reasons.pop(partition, None) is not None:
            self._resumed.append(partition)
            self.has_news = True

    def forget(self, partition: Partition) -> None:
        """Forget a partition that is followed again, or no longer: its refusal is over."""
        self.reasons.pop(partition, None)

    def tell(self) -> None:
        """Log new refusals: when leaders change, thousands may have the same reason."""
        self.has_news = False
        if self._refused:
            refused, self._refused = self._refused, {}
            for code, some in refused.items():
                logger.info(
                    "leader %d returned %s for %s", self._leader_id, code.name, _names(some)
                )
        if self._resumed:
            resumed, self._resumed = self._resumed, []
            logger.info("leader %d is followed again for %s", self._leader_id, _names(resumed))

    def _is_new(self, partition: Partition, code: ErrorCode) -> bool:
        before = self.reasons.get(partition)
        self.reasons[partition] = code
        return before is not code


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.index}"


def _names(partitions: Sequence[Partition]) -> str:
    names = [_name(one) for one in partitions[:NAMES_IN_A_LINE]]
    if len(partitions) > NAMES_IN_A_LINE:
        names.append(f"{len(partitions) - NAMES_IN_A_LINE} more")
    return ", ".join(names)
