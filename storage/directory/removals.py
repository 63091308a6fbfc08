"""Files set aside, to be removed after their delay; callable from any thread."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Removals:
    """Paths, and from when on each may go."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, str]] = deque()

    def add(self, paths: Iterable[str], due_ms: int) -> None:
        """Have paths removed at `due_ms` or later."""
        self._waiting.extend((due_ms, path) for path in paths)

    def take(self, now_ms: int) -> list[str]:
        """Return the paths whose delay is over; each once."""
        due = []
        for _ in range(len(self._waiting)):  # in place, as another thread may add one meanwhile
            entry = self._waiting.popleft()
            if entry[0] <= now_ms:
                due.append(entry[1])
            else:
                self._waiting.append(entry)
        return due
