"""A bound on open resources: file handles and memory mappings.

A broker may hold 50,000 partitions with several segments each, and the kernel gives a process some
thousand descriptors and 65,530 mappings. The least recently used one is closed and opened again
when needed.

Second chance ("clock") rather than true least-recently-used order, because touching must cost an
append no more than one attribute store: a holder used since the hand last passed gets another
round, any other is released.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Holder(Protocol):
    """Something that holds one resource that it can get again."""

    was_used: bool
    """Set at each use by the holder, cleared here."""

    def release(self) -> None:
        """Let the resource go; the next use gets it again."""


class OpenFileCache:
    """Holders with a resource, `limit` at most."""

    __slots__ = ("_holders", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def make_room(self) -> None:
        """Release resources to admit one more: call it before that one opens its own.

        So those within the limit never hold more than it, and at the limit a new one does not need
        a free resource elsewhere.
        """
        while len(self._holders) >= self.limit:
            self._release_one()

    def admit(self, holder: Holder) -> None:
        """Count `holder`, which has just got its resource."""
        self.make_room()
        self._holders[holder] = None

    def dismiss(self, holder: Holder) -> None:
        """Stop counting `holder`, which has closed its resource."""
        self._holders.pop(holder, None)

    def _release_one(self) -> None:
        while True:
            candidate, _ = self._holders.popitem(last=False)
            if not candidate.was_used:
                candidate.release()
                return
            candidate.was_used = False
            self._holders[candidate] = None
