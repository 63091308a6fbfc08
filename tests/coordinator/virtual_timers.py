"""Timers of a shard in virtual time, and their monotonic clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator.ports import TimerKey

UPTIME_MS = 7_000
"""Initial reading of the clock: small, as just after the start of a machine."""


class VirtualTimers:
    """Timers by key; run by `Harness.advance`."""

    def __init__(self) -> None:
        self.now_ms = UPTIME_MS
        self.due: dict[TimerKey, int] = {}

    def start(self, key: TimerKey, delay_ms: int) -> None:
        self.due[key] = self.now_ms + delay_ms

    def cancel(self, key: TimerKey) -> None:
        self.due.pop(key, None)

    def pass_until(self, end_ms: int) -> Iterator[TimerKey]:
        """Turn the clock to `end_ms`, and on the way to each timer that goes off."""
        while True:
            ready = [(due, key) for key, due in self.due.items() if due <= end_ms]
            if not ready:
                break
            due, key = min(ready, key=lambda each: each[0])
            del self.due[key]
            self.now_ms = max(self.now_ms, due)
            yield key
        self.now_ms = end_ms
