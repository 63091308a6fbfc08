"""The events of the controller, in their order."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

Handler = Callable[[], Awaitable[None]]

MOST_DOUBLINGS = 6
"""Doublings of the pause before an event that fails repeatedly is retried."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """An event to handle. Those with equal keys are one."""

    key: tuple[str, ...]
    handle: Handler
    is_asked_for: bool = False
    """True if a caller waits for it: then it fails instead of being retried."""
    is_about_now: bool = True
    """True if it reads the state when handled, not when queued."""
    failures: int = 0
    """Number of failures so far."""


class EventQueue:
    """One consumer takes events; one that is queued already is not queued twice.

    Keys consist of names and numbers that are never reused. (The address of an object is reused
    once it is freed, and an event with the address of another would be lost.)
    """

    def __init__(self) -> None:
        """Start empty."""
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._queued: set[tuple[str, ...]] = set()
        self._numbers = itertools.count()

    def put(self, event: Event) -> None:
        """Queue an event, unless an equal one is queued: it will read the newest state anyway."""
        if event.key not in self._queued:
            self._queued.add(event.key)
            self._events.put_nowait(event)

    def put_single(self, name: str, handle: Handler, *, is_asked_for: bool = False) -> None:
        """Queue an event that is equal to no other."""
        key = name, str(next(self._numbers))
        self.put(Event(key, handle, is_asked_for, is_about_now=False))

    def put_later(self, event: Event, seconds: float) -> None:
        """Queue an event after a pause."""
        asyncio.get_running_loop().call_later(seconds, self.put, event)

    def put_again(self, event: Event, seconds: float) -> None:
        """Queue an event that failed, after a pause that doubles with each failure."""
        doublings = min(event.failures, MOST_DOUBLINGS)
        self.put_later(replace(event, failures=event.failures + 1), seconds * 2**doublings)

    async def take(self) -> Event:
        """Wait for the next event."""
        event = await self._events.get()
        self._queued.discard(event.key)
        return event


def log_failure(name: str, error: BaseException) -> None:
    """Log an unexpected error, where nothing counts them."""
    logger.error("%s failed", name, exc_info=error)
