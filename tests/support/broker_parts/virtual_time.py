"""Unit tests in virtual time: an hour costs nothing, and each timer fires when it says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.machine.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

SECOND_MS = 1000


class LoopClock:
    """`broker.runtime.clock.Clock` by the time of the running loop."""

    def now_ms(self) -> int:
        return self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * SECOND_MS)


def run_in_virtual_time(scenario: Coroutine[Any, Any, T]) -> T:
    """Run to the end; raises BusyError if something turns without end and no time passes."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)
