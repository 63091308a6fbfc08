"""A shard's unstored state of streams groups: sessions, and the initial delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.modern_groups.watches import Watch, Watches
from coordinator.ports import TimerKey, TimerKind

if TYPE_CHECKING:
    from coordinator.ports import Timers

StreamsWatches = Watches[Watch]


class InitialDelays:
    """Groups that wait for more members before anything is assigned the first time."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._running: set[str] = set()

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._running

    def start(self, group_id: str, delay_ms: int) -> None:
        """Begin to wait, unless the group waits already."""
        if group_id not in self._running:
            self._running.add(group_id)
            self._timers.start(_key(group_id), delay_ms)

    def ended(self, group_id: str) -> None:
        """The timer went off."""
        self._running.discard(group_id)

    def cancel(self, group_id: str) -> None:
        """The group is removed."""
        if group_id in self._running:
            self._running.discard(group_id)
            self._timers.cancel(_key(group_id))

    def clear(self) -> None:
        """The shard goes elsewhere."""
        for group_id in list(self._running):
            self.cancel(group_id)


def _key(group_id: str) -> TimerKey:
    return TimerKey(group_id, TimerKind.STREAMS_INITIAL_DELAY)
