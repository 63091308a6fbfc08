"""Bounds the memory of large requests over all connections (`queued.max.request.bytes`).

A frame that fits in its connection's ordinary buffer takes nothing from here. A larger one takes
its whole size before the buffer grows, and gives it back when that memory is freed: when the frame
was handled, or the last view of it is gone. As in Apache Kafka's memory pool, the rest need not be
enough for the frame, only more than nothing: so a frame that was begun can always be finished, and
the most in use is the limit and one frame. A connection that gets nothing stops reading its socket,
and is called in turn once there is room.
"""

from __future__ import annotations

import contextlib
import logging
import os
import weakref
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

UNLIMITED = -1
SHARE_OF_MACHINE = 4
"""Without a configured limit the broker takes a quarter of the machine's memory, or container's."""
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


class Memory(Protocol):
    """A piece of memory that can be weakly referenced."""

    def __len__(self) -> int: ...


class RequestMemory:
    """Counts bytes, or other units of memory; allocates nothing itself."""

    def __init__(self, limit: int, soon: Callable[[Callable[[], object]], object]) -> None:
        """`limit` in the unit counted; `soon` has the loop call a function, from any thread."""
        self.limit = limit
        self.used = 0
        self._soon = soon
        self._held: dict[int, weakref.ref[Memory]] = {}
        self._numbers = count()
        self._waiting: dict[Callable[[], object], None] = {}

    def has_room(self) -> bool:
        """Return whether a frame may be received, whatever its size."""
        return self.used < self.limit

    def note(self, memory: Memory) -> None:
        """Count `memory` from now until it is freed."""
        size, key = len(memory), next(self._numbers)

        def freed(_: weakref.ref[Memory]) -> None:
            # On the thread that drops the last reference; the loop may be closed by then.
            with contextlib.suppress(RuntimeError):
                self._soon(partial(self._give_back, key, size))

        self.used += size
        self._held[key] = weakref.ref(memory, freed)

    def wait(self, callback: Callable[[], object]) -> None:
        """Call `callback` once when there may be room; it checks, and may have to wait again."""
        self._waiting[callback] = None

    def forget(self, callback: Callable[[], object]) -> None:
        """Do not call `callback`."""
        self._waiting.pop(callback, None)

    def _give_back(self, key: int, size: int) -> None:
        del self._held[key]
        self.used -= size
        self._wake()

    def _wake(self) -> None:
        """Call the waiting callbacks in their order, as long as there is room."""
        for callback in tuple(self._waiting):
            if not self.has_room():
                return
            if self._waiting.pop(callback, 0) is None:
                callback()


def request_memory_limit(configured: int, brokers: int = 1) -> int:
    """The limit in bytes: `queued.max.request.bytes`, or a share of the machine's memory.

    That share is divided by the number of brokers that `broker.processes` has on this machine.
    """
    if configured != UNLIMITED:
        return configured
    return _machine_memory() // (SHARE_OF_MACHINE * brokers)


def _machine_memory() -> int:
    """Bytes of memory that this process may use."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no container, or "max"
        size = min(size, int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    return size
