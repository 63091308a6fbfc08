"""Outcomes of the transactions of one transactional id, as reported to its producers.

Each writes its number to all partitions, and commits it as the position of a group. So the data
tell which transactions took effect, and the position which was the last of them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.checks.refusals import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.clients.values import At


class Outcome(enum.Enum):
    """Known outcome of a transaction."""

    NONE = "never committed"
    """Nobody asked for its commit, or that was refused."""
    COMMITTED = "committed"
    UNKNOWN = "perhaps committed"
    """Its commit was asked for, and whether it happened is not known."""


class Life(NamedTuple):
    """A producer from its InitProducerId on."""

    incarnation: int
    asked_at: float
    confirmed_at: float


@dataclass
class Account:
    """The transactions of one transactional id."""

    name: str
    outcomes: list[Outcome] = field(default_factory=list)
    newest: Life | None = None
    """The producer that asked last for an identity, and has it."""

    def begin(self) -> int:
        """The number of a new transaction."""
        self.outcomes.append(Outcome.NONE)
        return len(self.outcomes) - 1

    def confirmed(self, life: Life) -> None:
        """A producer has its identity: whoever had one before it asked is fenced."""
        if self.newest is None or life.asked_at > self.newest.asked_at:
            self.newest = life

    def asked(self, number: int) -> None:
        """A commit is under way."""
        self.outcomes[number] = Outcome.UNKNOWN

    def committed(self, number: int, life: Life, sent_at: float) -> None:
        """A commit was confirmed."""
        self.outcomes[number] = Outcome.COMMITTED
        newest = self.newest
        assert newest is not None
        if life.confirmed_at < newest.asked_at and sent_at > newest.confirmed_at:
            report(
                f"{self.name}: transaction {number} of {life} is committed at {sent_at:.3f}, "
                f"though {newest} came"
            )

    def refused(self, number: int) -> None:
        """A commit that was asked for once was refused."""
        self.outcomes[number] = Outcome.NONE

    def audit(self, visible: Mapping[At, list[int]]) -> str:
        """Describe an error in the numbers visible in each partition; empty if there is none."""
        for at, numbers in visible.items():
            where = f"{self.name} in {at[0]}-{at[1]}"
            if numbers != sorted(set(numbers)):
                return f"{where}: {numbers} are not in order, each once"
        found = [set(numbers) for numbers in visible.values()]
        for number, outcome in enumerate(self.outcomes):
            count = sum(number in numbers for numbers in found)
            wanted = {
                Outcome.NONE: (0,),
                Outcome.COMMITTED: (len(found),),
                Outcome.UNKNOWN: (0, len(found)),
            }[outcome]
            if count not in wanted:
                return (
                    f"{self.name}: transaction {number} was {outcome.value}, "
                    f"and is in {count} of {len(found)} partitions"
                )
        return ""

    def last_of(self, visible: Mapping[At, list[int]]) -> int:
        """The number of the last transaction that took effect; -1 if none did."""
        return max((numbers[-1] for numbers in visible.values() if numbers), default=-1)
