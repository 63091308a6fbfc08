"""The first stage of a start: the event loop, clocks and descriptors that all parts stand on."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from typing import TYPE_CHECKING

from broker.cluster.admission import unless_stopped
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.open_files import OpenFiles
from broker.runtime.slices import Turns
from broker.runtime.supervision import Supervision
from controller.topics.topics import Chance

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from broker.runtime.clock import Clock
    from broker.runtime.platform import Platform
    from broker.runtime.supervision import TaskMaker
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig

    T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class StopRequest:
    """A request to stop the broker."""

    event: asyncio.Event
    """Set when it shall stop."""
    give_up: Callable[[str], None]
    """Have it stop as one that cannot go on, for this reason. From any thread."""


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """Machine resources of a broker."""

    platform: Platform
    loop: asyncio.AbstractEventLoop
    open_files: OpenFiles
    timers: Timers
    supervision: Supervision
    background: BackgroundLoop
    chance: Chance
    stop: StopRequest

    @property
    def clock(self) -> Clock:
        """The clocks."""
        return self.platform.clock

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for others' work; raises StartAbandonedError on a request to stop meanwhile."""
        return await unless_stopped(self.stop.event, work)


def take_machine(
    config: BrokerConfig, platform: Platform, tasks: TaskMaker, stop: StopRequest
) -> Machine:
    """Call it on the event loop; `tasks` waits for the broker's tasks in the end."""
    loop = asyncio.get_running_loop()
    clock = platform.clock
    files = OpenFiles(platform.open_files_limit(), config.reserved_file_descriptors, clock)
    timers = platform.timers(loop)
    supervision = Supervision(tasks, timers, clock)
    timers.on_failure = supervision.note
    slices = Turns(platform.stopwatch).slices
    background = BackgroundLoop(clock, timers, supervision.spawn, slices, supervision.note)
    chance = Chance(secrets.randbelow, secrets.token_bytes)
    return Machine(platform, loop, files, timers, supervision, background, chance, stop)
