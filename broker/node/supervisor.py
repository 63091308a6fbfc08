"""The supervisor of a node: it keeps the brokers up, and stops them one after the other.

It holds nothing that the brokers need. When it dies they go on, and the next supervisor finds them
by their locks. A rolling restart begins with a restart of this program, in the same process and
with the new code, if there is any: it then finds its brokers by their locks again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from broker import node
from broker.health.service_notices import ServiceNotices
from broker.metrics.optional_metrics import bound_endpoint
from broker.metrics.status_socket import METRICS, PARTITIONS, STATUS, StatusSocket
from broker.node.gathered_metrics import SCRAPERS, GatheredMetrics
from broker.node.member import Member
from broker.node.rolling_restart import Progress, RollingRestart
from broker.runtime.timers import Timers
from config.machine.own_program import environment, module_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.metrics.endpoint import MetricsEndpoint
    from broker.node.plan import NodePlan

logger = logging.getLogger(__name__)

EXIT_OK: Final = 0
EXIT_KILLED: Final = 3
"""A broker had to be killed, since it did not stop in time."""

CHECK_SECONDS: Final = 120
ENDINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RESTART: Final = signal.SIGUSR1


def hold_back_signals() -> None:
    """Have the signals that a supervisor knows wait until one hears them, and end nothing."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDINGS, RESTART})


class Supervisor:
    """Made on the event loop; `words` are those of the command line that runs this program."""

    def __init__(self, plan: NodePlan, words: Sequence[str]) -> None:
        self._plan = plan
        self._words = tuple(words)
        self._stop = asyncio.Event()
        self._members = [Member(member, plan.config) for member in plan.members]
        self._restart = RollingRestart(
            self._members, self._stop, plan.config.broker_processes_sync_timeout_ms
        )
        self._restart_is_wanted = asyncio.Event()

    async def run(self, restart: int | None) -> int:
        """Supervise until a signal; `restart` is the number of a rolling restart that is due.

        Returns the exit code. Raises ListenError and ConfigError if an address cannot be taken.
        """
        endpoint, status = await asyncio.to_thread(self._take_addresses)
        notices = ServiceNotices(os.environ, os.getpid(), Timers(asyncio.get_running_loop()))
        self._hear_signals()
        try:
            self._serve(endpoint, status)
            async with asyncio.TaskGroup() as group:
                for member in self._members:
                    group.create_task(member.run(), name=member.name)
                waiting = group.create_task(self._serve_restarts(restart), name="restarts")
                notices.ready(f"supervises {len(self._members)} brokers")
                await self._stop.wait()
                notices.stopping()
                waiting.cancel()
                return await self._stop_in_turn()
        finally:
            notices.close()
            status.close()
            if endpoint is not None:
                endpoint.close()

    def _take_addresses(self) -> tuple[MetricsEndpoint | None, StatusSocket]:
        endpoint = None if self._plan.config.metrics_port < 0 else bound_endpoint(self._plan.config)
        return endpoint, StatusSocket(self._plan.socket)

    def _serve(self, endpoint: MetricsEndpoint | None, status: StatusSocket) -> None:
        status.serve({STATUS: self._status})
        if endpoint is not None:
            from broker.metrics.endpoint import PARTITIONS_PATH, PATH  # noqa: PLC0415

            gathered = GatheredMetrics(self._members)
            pages = {PATH: METRICS, PARTITIONS_PATH: PARTITIONS}
            made = {path: partial(gathered.page, name) for path, name in pages.items()}
            endpoint.serve(made, SCRAPERS)
            logger.info("metrics of all brokers at %s%s", endpoint.url, PATH)

    def _status(self) -> bytes:
        """Status of everything; on the thread of the status socket."""
        brokers = [
            {
                "broker": member.plan.broker_id,
                "process": member.plan.process,
                "pid": None if (running := member.process) is None else running.pid,
                "state": member.state.value,
                "restarts": member.restarts,
            }
            for member in self._members
        ]
        stage = self._restart.stage
        restart = stage._asdict() | {"progress": stage.progress.value}
        return json.dumps({"pid": os.getpid(), "brokers": brokers, "restart": restart}).encode()

    def _hear_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in ENDINGS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # under nohup
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(RESTART, self._restart_is_wanted.set)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # pending signals arrive now

    def _end(self, number: int) -> None:
        if not self._stop.is_set():
            logger.info("%s: the brokers stop, one after the other", signal.Signals(number).name)
            self._stop.set()
            return
        logger.info("%s again: the brokers stop all at once", signal.Signals(number).name)
        for member in self._members:
            member.hurry()

    async def _stop_in_turn(self) -> int:
        """Stop the brokers, last first; each hands over its leaders before the next one does."""
        code = EXIT_OK
        for member in reversed(self._members):
            if not await member.stop():
                code = EXIT_KILLED
        return code

    async def _serve_restarts(self, due: int | None) -> None:
        """Do the rolling restart that is due, then restart this program for each requested one."""
        if due is not None:
            self._restart.begin(due, "the supervisor has begun anew")
            await self._restart.run()
        number = self._restart.stage.number
        while True:
            await self._restart_is_wanted.wait()
            self._restart_is_wanted.clear()
            number += 1
            self._restart.begin(number, "checking the configuration")
            checked = await asyncio.to_thread(self._check)
            if checked:
                self._restart.fail(checked)
            elif not self._stop.is_set():
                self._begin_anew(number)

    def _check(self) -> str:
        """Reason why this program would fail to restart; empty if it would not. Takes a second."""
        command = module_command(node.__name__, *self._words, "--check")
        try:
            checked = subprocess.run(  # noqa: S603  # its own command line
                command,
                env=environment(os.environ),
                capture_output=True,
                text=True,
                timeout=CHECK_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        lines = (checked.stderr or checked.stdout).strip()
        return "" if checked.returncode == EXIT_OK else lines or f"exit code {checked.returncode}"

    def _begin_anew(self, number: int) -> None:
        """Become a new supervisor. Signals wait until that one hears them, and are not lost."""
        assert self._restart.stage.progress is Progress.UNDER_WAY
        hold_back_signals()
        sys.stdout.flush()
        sys.stderr.flush()
        own = module_command(node.__name__, *self._words, "--restart-number", str(number))
        os.execve(own[0], own, {**os.environ, **environment(os.environ)})  # noqa: S606  # no shell is wanted
