"""Which topics were said to exist, for who has yet to decide whether they shall."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, eq=False)
class _Watch:
    names: frozenset[str]
    told: set[str] = field(default_factory=set)


class ReportedTopics:
    """Notes of them what somebody watches, and nothing else."""

    def __init__(self) -> None:
        """Start with nobody watching."""
        self._watches: set[_Watch] = set()

    @contextmanager
    def watch(self, names: Iterable[str]) -> Iterator[set[str]]:
        """Those of some topics that a client is told exist from now on; grows until the exit."""
        watch = _Watch(frozenset(names))
        self._watches.add(watch)
        try:
            yield watch.told
        finally:
            self._watches.discard(watch)

    def note(self, names: Iterable[str]) -> None:
        """A client is told that these exist."""
        told = frozenset(names)
        for watch in self._watches:
            watch.told.update(watch.names & told)
