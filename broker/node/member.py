"""One broker of the node: found or started, watched, started again when it has ended by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from typing import TYPE_CHECKING, Final

from broker.metrics.status_socket import STATUS, ask
from broker.node.broker_process import BrokerProcess
from broker.node.states import TRANSITIONS, Backoff, Event, State

if TYPE_CHECKING:
    from broker.node.plan import MemberPlan
    from config.broker import BrokerConfig

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.5
"""Interval at which a starting broker is asked whether it serves."""
ANSWER_SECONDS: Final = 10.0
MS: Final = 1000


async def passes(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most `seconds`; return whether it was set."""
    try:
        async with asyncio.timeout(seconds):  # wait_for loses a cancellation that comes with it
            await event.wait()
    except TimeoutError:
        return False
    return True


class Member:
    """`run` keeps it up until `stop`; other operations are requests to it in between."""

    def __init__(self, plan: MemberPlan, node_config: BrokerConfig) -> None:
        self.plan = plan
        self.state = State.DOWN
        self.process: BrokerProcess | None = None
        """None when it does not run."""
        self.restarts = 0
        """Number of restarts after it had ended by itself."""
        self._backoff = Backoff(
            node_config.broker_processes_restart_backoff_ms,
            node_config.broker_processes_restart_backoff_max_ms,
        )
        self._stop_seconds = node_config.broker_processes_stop_timeout_ms / MS
        self._failures = 0
        self._serving_since: float | None = None
        self._ending = asyncio.Event()
        self._clock = asyncio.get_running_loop().time

    @property
    def name(self) -> str:
        """As in the log."""
        return f"broker {self.plan.broker_id}"

    async def run(self) -> None:
        """Keep it up; returns when it is down after `stop`."""
        while not self._ending.is_set():
            try:
                self.process = self._found() or self._started()
            except OSError as error:
                logger.warning("%s cannot be started: %s", self.name, error)
                await self._rest(0)
                continue
            self._turn(Event.RUNS)
            await self._watch(self.process)
            served_ms = self._served_ms()
            ended, self.process, self._serving_since = self.process, None, None
            self._turn(Event.ENDED)
            if self.state is State.WAITING:
                logger.warning("%s has ended: %s", self.name, _how(ended))
                await self._rest(served_ms)
                self.restarts += not self._ending.is_set()
        self._turn(Event.STOP)

    async def stop(self) -> bool:
        """End it for good; returns whether it took no force."""
        self._ending.set()
        return await self.end()

    async def end(self) -> bool:
        """End the process it has: `run` starts another. Returns whether it took no force."""
        process = self.process
        if process is None:
            return True
        self._turn(Event.STOP)
        process.send(signal.SIGTERM)
        if await passes(process.ended, self._stop_seconds):
            return True
        logger.error("%s does not stop in %g s: killed", self.name, self._stop_seconds)
        process.send(signal.SIGKILL)
        await process.ended.wait()
        return False

    async def status(self) -> dict[str, object]:
        """Its own status; empty if it does not answer."""
        try:
            page = await asyncio.to_thread(ask, self.plan.socket, STATUS, ANSWER_SECONDS)
            found = json.loads(page)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def hurry(self) -> None:
        """Ask its process to end, at once, without waiting for others."""
        self._ending.set()
        if self.process is not None:
            self._turn(Event.STOP)
            self.process.send(signal.SIGTERM)

    def let_go(self) -> None:
        """Forget its process, which goes on without this supervisor."""
        if self.process is not None:
            self.process.let_go()

    def _found(self) -> BrokerProcess | None:
        process = BrokerProcess.find(self.plan.lock)
        if process is not None:
            logger.info("%s runs already, as process %d", self.name, process.pid)
        return process

    def _started(self) -> BrokerProcess:
        process = BrokerProcess.start(self.plan.command)
        logger.info("%s is started, as process %d", self.name, process.pid)
        return process

    async def _watch(self, process: BrokerProcess) -> None:
        """Return when the process has ended."""
        while self.state is State.STARTING and not process.ended.is_set():
            is_serving = (await self.status()).get("is_serving") is True
            if is_serving and self.state is State.STARTING and not process.ended.is_set():
                self._turn(Event.SERVES)
                self._serving_since = self._clock()
                logger.info("%s serves", self.name)
            else:
                await passes(process.ended, POLL_SECONDS)
        await process.ended.wait()

    async def _rest(self, served_ms: int) -> None:
        self._failures = self._backoff.failures(self._failures, served_ms)
        wait_ms = self._backoff.wait_ms(self._failures)
        text = "%s is started again in %d ms (failure %d in a row)"
        logger.warning(text, self.name, wait_ms, self._failures)
        await passes(self._ending, wait_ms / MS)

    def _served_ms(self) -> int:
        since = self._serving_since
        return 0 if since is None else int((self._clock() - since) * MS)

    def _turn(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]


def _how(process: BrokerProcess) -> str:
    code = process.exit_code
    if code is None:
        return "why is not known, since another supervisor had started it"
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        return f"killed by {names.get(-code, f'signal {-code}')}"  # those for real time have none
    return f"exit code {code}"
