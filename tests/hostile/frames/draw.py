"""Chance for one frame, and what its fields have in common: one group, one topic, one transaction.

However much the broker has told so far, a draw takes as much chance as it would otherwise: what
follows in the frame stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from protocol.uuids import ZERO_UUID
from tests.hostile.frames import names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random
    from uuid import UUID

    from tests.hostile.frames.names import Identifiers

T = TypeVar("T")

NOBODY = -1


class Draw:
    """One frame's chance. Everything is decided by `chance`, or told by `known`."""

    __slots__ = ("chance", "group", "known", "name", "random", "topic", "transaction")

    def __init__(self, chance: Random, known: Identifiers) -> None:
        self.chance = chance
        self.random = chance.random
        self.known = known
        self.group = self.pick(names.GROUPS)
        self.topic = self.pick(names.TOPICS)
        self.transaction = self.pick(names.TRANSACTIONS)
        self.name = self.pick(names.MEMBERS)

    def pick(self, values: Sequence[T]) -> T:
        """One of `values`."""
        return values[int(self.random() * len(values))]

    def below(self, limit: int) -> int:
        """A number from 0 on."""
        return int(self.random() * limit)

    def happens(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random() < probability

    def topic_id(self) -> UUID:
        """Id of a topic that may exist."""
        name = self.topic if self.happens(0.7) else self.pick(names.TOPICS)
        return self.known.topic_ids.get(name, ZERO_UUID)

    def member(self) -> tuple[str, int]:
        """A member of the frame's group and its generation, most often the newest."""
        back = 1 if self.happens(0.7) else 2 + self.below(4)
        members = self.known.members.get(self.group, ())
        return members[-back] if back <= len(members) else ("", NOBODY)

    def group_of(self, groups: Sequence[str]) -> str:
        """The frame's group among those of one kind."""
        return groups[names.GROUPS.index(self.group) % len(groups)]

    def epoch(self, groups: Sequence[str]) -> int:
        """The epoch of the frame's member, which names itself, in its group of one kind."""
        return self.known.epochs.get((self.group_of(groups), self.name), 0)

    def producer(self, transaction: str) -> tuple[int, int]:
        """Producer id and epoch of a transaction; of "" for an idempotent producer's."""
        return self.known.producers.get(transaction, (NOBODY, NOBODY))

    def session(self) -> int:
        """A fetch session that may be open; 0 if there is none."""
        which = self.random()
        sessions = self.known.sessions
        return sessions[int(which * len(sessions))] if sessions else 0
