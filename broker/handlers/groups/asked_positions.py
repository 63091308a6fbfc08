"""Positions that a request has already asked for, so that none is answered twice.

A client names a position with four bytes, or none if it asks for all of a group; the answer
includes the metadata stored with it, possibly kilobytes. Apache Kafka answers each repetition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from broker.requests.steps import Steps

INDEXES_AT_ONCE: Final = 100
"""Partitions that are looked up in one step: ten microseconds."""


class AskedPositions:
    """Of one request."""

    __slots__ = ("_groups", "_partitions")

    def __init__(self) -> None:
        self._groups: set[str] = set()
        self._partitions: dict[Hashable, set[int]] = {}

    def is_new(self, group_id: str) -> bool:
        """Return whether all positions of a group are requested for the first time."""
        is_known = group_id in self._groups
        self._groups.add(group_id)
        return not is_known

    def new_indexes(self, topic: Hashable, indexes: Sequence[int]) -> Steps[list[int]]:
        """Partitions of a group's topic not asked for before, each once."""
        known = self._partitions.setdefault(topic, set())
        new: list[int] = []
        for number, index in enumerate(indexes):
            if index not in known:
                known.add(index)
                new.append(index)
            if number % INDEXES_AT_ONCE == INDEXES_AT_ONCE - 1:
                yield
        return new
