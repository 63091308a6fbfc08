"""Waiters for a partition's high watermark: acks=all produces, coordinators, markers.

A wait ends once: by the commit, by the end of leadership, or by being cancelled. Cancelled ones
(the client left, or its timeout has expired) are removed before they are half of all, so that
retries of producers beside a hanging follower do not pile up.
"""

from __future__ import annotations

import heapq
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

FEW: Final = 64
"""Number of cancelled waiters up to which they are not looked for."""


class CommitWaiter:
    """One wait; `cancel` ends it."""

    __slots__ = ("_waiters", "callback")

    def __init__(
        self, callback: Callable[[ErrorCode], None] | None, waiters: CommitWaiters | None
    ) -> None:
        self.callback = callback
        self._waiters = waiters

    def cancel(self) -> None:
        """Do not call back; no harm when that was done already."""
        if self.callback is not None:
            self.callback = None
            if self._waiters is not None:
                self._waiters.note_cancelled()


COMMITTED = CommitWaiter(None, None)
"""Waiter of a wait that was over at once."""


class CommitWaiters:
    """Waiters of one partition, by the offset that must be committed."""

    __slots__ = ("_cancelled", "_name", "_number", "heap")

    def __init__(self, name: str) -> None:
        """`name` is the partition's, for the log."""
        self._name = name
        self.heap: list[tuple[int, int, CommitWaiter]] = []
        """By offset; readable from outside to see whether there are waiters."""
        self._number = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, offset: int, callback: Callable[[ErrorCode], None]) -> CommitWaiter:
        """Call back when the high watermark is at least `offset`, in the order of offsets."""
        self._number += 1
        waiter = CommitWaiter(callback, self)
        heapq.heappush(self.heap, (offset, self._number, waiter))
        return waiter

    def complete(self, high_watermark: int, code: ErrorCode) -> None:
        """Call those whose offset is reached."""
        heap = self.heap
        while heap and heap[0][0] <= high_watermark:
            self._call(heapq.heappop(heap)[2], code)

    def fail(self, code: ErrorCode) -> None:
        """Call all."""
        heap, self.heap = self.heap, []
        self._cancelled = 0
        for _, _, waiter in heap:
            self._call(waiter, code)

    def note_cancelled(self) -> None:
        """One was cancelled: forget all such when they are many."""
        self._cancelled += 1
        if self._cancelled > FEW and self._cancelled * 2 > len(self.heap):
            self.heap = [entry for entry in self.heap if entry[2].callback is not None]
            heapq.heapify(self.heap)
            self._cancelled = 0

    def _call(self, waiter: CommitWaiter, code: ErrorCode) -> None:
        """Call one; an exception does not affect the next."""
        callback, waiter.callback = waiter.callback, None
        if callback is None:
            self._cancelled = max(self._cancelled - 1, 0)
            return
        try:
            callback(code)
        except Exception:
            logger.exception("%s: delayed answer dropped", self._name)


NOBODY_WAITS = CommitWaiters("")
"""Shared by partitions without a waiter so far; nothing may be added."""
