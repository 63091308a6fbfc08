"""Rolling restart of all brokers of the node, one at a time, and none while replicas are missing.

Before each step every broker of the node has to serve and to reach ZooKeeper, and every partition
with a replica on one of them to have a leader and all its replicas in sync. If that does not happen
in time, the restart is aborted and the remaining brokers go on as they are.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.node.member import MS, passes
from broker.node.states import State

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.5


class Progress(Enum):
    """Progress of a rolling restart."""

    NONE = "none"
    UNDER_WAY = "under way"
    DONE = "done"
    FAILED = "failed"


class Stage(NamedTuple):
    """Progress of rolling restarts, readable on other threads."""

    number: int
    """Number of restarts so far, to distinguish a requested one from those before."""
    progress: Progress
    detail: str


class Restartable(Protocol):
    """A broker of the node."""

    state: State

    @property
    def name(self) -> str:
        """As in the log."""

    async def status(self) -> dict[str, object]:
        """Its own status; empty if it does not answer."""

    async def end(self) -> bool:
        """Restart it; return once it has ended."""


class RollingRestart:
    """The one that is under way, or was last."""

    def __init__(
        self, members: Sequence[Restartable], stop: asyncio.Event, timeout_ms: int
    ) -> None:
        self._members = members
        self._stop = stop
        self._timeout_seconds = timeout_ms / MS
        self.stage = Stage(0, Progress.NONE, "")

    def begin(self, number: int, step: str) -> None:
        """Note that a restart is under way, and its first step."""
        self._say(Stage(number, Progress.UNDER_WAY, step))

    def fail(self, why: str) -> None:
        """Give up."""
        self.stage = self.stage._replace(progress=Progress.FAILED, detail=why)
        logger.error("rolling restart given up: %s", why)

    async def run(self) -> None:
        """Restart all, or as many as goes."""
        for member in self._members:
            if not await self._are_in_sync(f"{member.name} waits for replicas"):
                return
            self._go_on(f"{member.name} is being restarted")
            await member.end()
        if await self._are_in_sync("waiting for the last replicas"):
            text = "all brokers were restarted"
            self._say(self.stage._replace(progress=Progress.DONE, detail=text))

    async def _are_in_sync(self, text: str) -> bool:
        """Wait until the next broker may go; False if it must not."""
        self._go_on(text)
        clock = asyncio.get_running_loop().time
        ends = clock() + self._timeout_seconds
        while missing := await self._missing():
            if clock() >= ends:  # a broker that hangs takes its time over each question
                self.fail(f"{missing}, after {self._timeout_seconds:g} s")
                return False
            if await passes(self._stop, POLL_SECONDS):
                self.fail("the node is stopping")
                return False
        return True

    async def _missing(self) -> str:
        """Reason why the next step must wait."""
        for member in self._members:
            if member.state is not State.SERVING:
                return f"{member.name} is {member.state.value}"
            status = await member.status()
            if status.get("is_cut_off"):  # it knows an old state, and could not start again
                return f"{member.name} cannot reach ZooKeeper"
            lacking = status.get("out_of_sync")
            if not isinstance(lacking, int):
                return f"{member.name} does not say how it is"
            if lacking:
                return f"{member.name} has replicas of {lacking} partitions that are not in sync"
        return ""

    def _go_on(self, text: str) -> None:
        self._say(self.stage._replace(detail=text))

    def _say(self, stage: Stage) -> None:
        self.stage = stage
        logger.info("rolling restart: %s", stage.detail)
