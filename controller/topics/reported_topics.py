"""Topics that were reported as existing while their creation is still being decided."""

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
    """Notes the reported topics that are watched, and no others."""

    def __init__(self) -> None:
        """Start without watches."""
        self._watches: set[_Watch] = set()

    @contextmanager
    def watch(self, names: Iterable[str]) -> Iterator[set[str]]:
        """The watched topics that are reported to a client from now on; grows until the exit."""
        watch = _Watch(frozenset(names))
        self._watches.add(watch)
        try:
            yield watch.told
        finally:
            self._watches.discard(watch)

    def note(self, names: Iterable[str]) -> None:
        """Note topics that were reported to a client as existing."""
        told = frozenset(names)
        for watch in self._watches:
            watch.told.update(watch.names & told)
