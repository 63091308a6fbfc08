"""Groups in which one member at a time owns a partition: what members were told and did.

A grant is what the coordinator tells a member that it owns in an epoch. Of two grants of a
partition the one of the later epoch counts; who has the other has not heard of that yet. What such
a member reads comes again, which nothing can prevent. What it commits must be refused.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.checks.refusals import report

if TYPE_CHECKING:
    from collections.abc import Iterable

NEVER_COMMITTED = -1


class Grant(NamedTuple):
    """The owner of a partition from an epoch on."""

    epoch: int
    member: str


class Owners:
    """One group."""

    def __init__(self, group_id: str, *, may_begin_again: bool = False) -> None:
        """`may_begin_again` if epochs may, as members of two protocols come and go."""
        self.group_id = group_id
        self.newest_epoch = 0
        """The highest that any member was told."""
        self.processed: defaultdict[int, set[int]] = defaultdict(set)
        """Offsets by partition."""
        self.committed: dict[int, int] = {}
        """The highest position that was accepted, by partition."""
        self._attempted: defaultdict[int, set[int]] = defaultdict(set)
        self._may_begin_again = may_begin_again
        self._granted: dict[tuple[int, int], str] = {}
        self._newest: dict[int, Grant] = {}

    def grant(self, member: str, epoch: int, partitions: Iterable[int]) -> None:
        """A member has heard that it owns these."""
        self.newest_epoch = max(self.newest_epoch, epoch)
        for partition in partitions:
            holder = self._granted.setdefault((partition, epoch), member)
            if holder != member and not self._may_begin_again:
                report(
                    f"group {self.group_id}: {holder} and {member} both own partition {partition} "
                    f"in epoch {epoch}"
                )
            newest = self._newest.get(partition)
            if newest is None or epoch >= newest.epoch:
                self._newest[partition] = Grant(epoch, member)

    def told_epoch(self, member: str, before: int, after: int) -> None:
        """A member that said `before` is answered with `after`."""
        if after < before:
            report(f"group {self.group_id}: epoch of {member} fell from {before} to {after}")

    def is_superseded(self, member: str, partition: int) -> bool:
        """Return whether another member is known to own the partition in a later epoch."""
        newest = self._newest.get(partition)
        return newest is not None and newest.member != member

    def attempt(self, partition: int, position: int) -> None:
        """A position is about to be sent."""
        self._attempted[partition].add(position)

    def accepted(self, member: str, partition: int, position: int, *, was_superseded: bool) -> None:
        """A commit was answered without an error."""
        where = f"group {self.group_id}, partition {partition}"
        if self._may_begin_again:
            self.committed[partition] = position
            return
        if was_superseded:
            report(
                f"{where}: a commit of {member} was accepted, "
                f"though {self._newest[partition]} was granted before it was sent"
            )
        before = self.committed.get(partition, NEVER_COMMITTED)
        if position < before:
            report(f"{where}: {member} commits {position} after {before} was accepted")
        self.committed[partition] = max(before, position)

    def fetched(self, member: str, partition: int, position: int, floor: int) -> None:
        """A position was read; `floor` was accepted before that was asked for."""
        where = f"group {self.group_id}, partition {partition}"
        if position != NEVER_COMMITTED and position not in self._attempted[partition]:
            report(f"{where}: {member} begins at {position}, which nobody has committed")
        if self._may_begin_again or self.is_superseded(member, partition):
            return
        if position < floor:
            report(f"{where}: {member} begins at {position}, though {floor} was committed")

    def lost(self, partition: int, end: int) -> list[int]:
        """Offsets before `end` that no member has processed."""
        return sorted(set(range(end)) - self.processed[partition])
