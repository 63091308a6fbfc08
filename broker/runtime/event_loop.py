"""The event loop as parts of the broker see it: its time, its timers, its tasks, its slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker.runtime.supervision import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.runtime.clock import Clock
    from broker.runtime.slices import Slices
    from broker.runtime.timers import Timers


class Note(Protocol):
    """`Supervision.note`."""

    def __call__(self, name: str, error: BaseException, kind: str = "") -> None:
        """Count a failure of the work of this name as one of `kind`."""


class BackgroundLoop(NamedTuple):
    """Clock, timers and task owner for background work."""

    clock: Clock
    timers: Timers
    spawn: Callable[[Coroutine[Any, Any, None], str], object]
    """Runs a coroutine as a task of this name, which the broker owns."""
    slices: Callable[[], Slices]
    """For a piece of work that may be long."""
    note: Note = log_failure
    """Notes an unforeseen error of background work."""
