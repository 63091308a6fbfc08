"""Which positions a request has asked for so far, so that none is answered twice.

A position costs a client four bytes to name, or nothing where it asks for all of a group; to answer
it takes what was stored with it, kilobytes perhaps. Apache Kafka answers as often as it is asked.
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
        """Whether all positions of a group are asked for, for the first time."""
        is_known = group_id in self._groups
        self._groups.add(group_id)
        return not is_known

    def new_indexes(self, topic: Hashable, indexes: Sequence[int]) -> Steps[list[int]]:
        """Those partitions of a group's topic that were not asked for before, each once."""
        known = self._partitions.setdefault(topic, set())
        new: list[int] = []
        for number, index in enumerate(indexes):
            if index not in known:
                known.add(index)
                new.append(index)
            if number % INDEXES_AT_ONCE == INDEXES_AT_ONCE - 1:
                yield
        return new
