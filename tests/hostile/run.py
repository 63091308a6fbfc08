"""One run: a broker, its honest clients, its hostile ones, and a verdict."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from protocol.headers import request_front
from tests.hostile.broker_log import BrokerLog
from tests.hostile.clients.afterwards import compare
from tests.hostile.clients.attackers import Attack
from tests.hostile.clients.bystanders import Bystanders, Crowd
from tests.hostile.clients.control_process import ControlProcess, ControlReport
from tests.hostile.clients.janitor import Janitor
from tests.hostile.findings import Findings
from tests.hostile.frames.blocks import blocks
from tests.hostile.frames.names import Identifiers
from tests.hostile.frames.requests import served
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

LOOK_SECONDS: Final = 0.5
TIDY_SECONDS: Final = 5.0
SAY_SECONDS: Final = 10.0
SETTLE_SECONDS: Final = 5.0
RETURN_SECONDS: Final = 60.0
"""Time for memory to come back after all clients have left."""
EXPIRY_SECONDS: Final = 10
KEPT_TYPES: Final = frozenset(
    {
        *("broker.network.connection.Connection", "broker.network.frame_buffer.FrameBuffer"),
        *("broker.requests.context.Context", "asyncio.selector_events._SelectorSocketTransport"),
    }
)
"""Types that must go with their last user: a garbage cycle would hold them, and all that they have,
until thousands are collected at once, while all clients wait."""

MEGABYTE: Final = 1_000_000

PROPERTIES: Final = {
    "group.min.session.timeout.ms": "1000",
    "log.retention.check.interval.ms": "10000",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.record.lock.duration.ms": "15000",
    "metrics.port": "0",
    "transaction.state.log.num.partitions": "5",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transactional.id.expiration.ms": str(EXPIRY_SECONDS * 1000),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "2000",
    "producer.id.expiration.ms": "86400000",
}
"""So that what hostile clients leave (members, transactions, files) is given up while one looks."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run."""

    seed: int
    frames: range
    directory: Path
    """For the broker's files, and what is found."""
    crowd: Crowd
    frames_per_second: float = 1300.0
    """0 is as fast as it goes."""
    in_cluster: bool = False
    """With a ZooKeeper: then it serves what brokers ask each other."""
    with_controls: bool = True
    most_left_bytes: int = 20 * MEGABYTE
    """Bound on the growth of resident memory at the end."""
    slowest_ms: float | None = 50.0
    """Of the controls' Metadata requests, 99 in 100 take no longer; None does not judge time."""


@dataclass(slots=True)
class Outcome:
    """Outcome of a run."""

    findings: Findings
    report: ControlReport = field(default_factory=ControlReport)
    resident_before: int = 0
    resident_after: int = 0
    resident_peak: int = 0
    seconds: float = 0.0
    ledger_records: int = 0


class Run:
    """Runs once."""

    def __init__(self, settings: Settings) -> None:
        """Raises FileExistsError if the directory holds something: perhaps another run."""
        settings.directory.mkdir(parents=True, exist_ok=True)
        if any(settings.directory.iterdir()):
            raise FileExistsError(f"{settings.directory} is not empty")
        self.settings = settings
        self.known = Identifiers()
        self.findings = Findings(settings.directory)
        self.outcome = Outcome(self.findings)
        self._zookeeper: ZooKeeperServer | None = None
        properties = dict(PROPERTIES)
        data = settings.directory / "broker" / "data"
        properties["log.dirs"] = f"{data},{data}-2"
        if settings.in_cluster:
            self._zookeeper = ZooKeeperServer(settings.directory / "zookeeper")
            properties["zookeeper.connect"] = self._zookeeper.address
        self.broker: BrokerProcess = ours(settings.directory / "broker", properties)
        module = self.broker.command.index("-m") + 1
        self.broker.command[module] = "tests.hostile.watched_broker"
        self.log = BrokerLog(self.broker.output_path, self.findings)
        self.janitor = Janitor(self.broker.port, self.known)
        self.attack = Attack(
            self.broker.port, self.known, self.findings, settings.frames_per_second
        )
        self.bystanders = Bystanders(self.broker.port, settings.crowd, settings.seed)

    def go(self) -> Outcome:
        """Do it all; what was found is in the outcome."""
        controls = None
        try:
            if self._zookeeper is not None:
                self._zookeeper.start()
            self.broker.start()
            self.janitor.prepare()
            self._ask_everything_once()
            if self.settings.with_controls:
                controls = ControlProcess(self.broker.port, self.findings, self._ask_where_it_is)
                controls.wait_until_ready()
            time.sleep(SETTLE_SECONDS)
            self.outcome.resident_before = self.broker.resident_bytes()
            asyncio.run(self._mistreat())
            self._await_memory()
            if controls is not None:
                self.outcome.report = controls.end()
            self._start_again()
            self._judge()
        finally:
            if controls is not None:
                controls.kill()
            self.broker.kill()
            if self._zookeeper is not None:
                self._zookeeper.kill()
        return self.outcome

    def _ask_everything_once(self) -> None:
        """Have every codec compiled, which stays: only then is memory compared."""
        for versions in dict.fromkeys(served()):
            for request, version in versions:
                body = request().encode(version)
                front = request_front(1, int(request.API_KEY), version, b"first", len(body))
                with RawConnection.open(self.broker.port) as connection:
                    connection.socket.settimeout(LOOK_SECONDS)
                    with contextlib.suppress(OSError, struct.error):
                        connection.send(front + body)
                        connection.receive()

    def _ask_where_it_is(self) -> None:
        """Have a broker that has answered nobody for seconds say what it is doing."""
        if self.settings.slowest_ms is not None:
            self.findings.add("stall", "Metadata is not answered for two seconds")
        os.kill(self.broker.pid, signal.SIGUSR1)
        time.sleep(LOOK_SECONDS)
        print(self.broker.output_tail(), flush=True)

    async def _mistreat(self) -> None:
        began = time.monotonic()
        self.bystanders.start()
        watch = asyncio.create_task(self._watch())
        attack = asyncio.create_task(
            self.attack.run(blocks(self.settings.seed, self.settings.frames))
        )
        await asyncio.wait({attack, watch}, return_when=asyncio.FIRST_COMPLETED)
        for task in (attack, watch):
            task.cancel()
        results = await asyncio.gather(attack, watch, return_exceptions=True)
        await self.bystanders.dismiss()
        self.outcome.seconds = time.monotonic() - began
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _watch(self) -> None:
        """Look at the broker and its log, tidy up, and say how far it is; ends if it died."""
        began = tidied = said = time.monotonic()
        while self.broker.is_running():
            await asyncio.sleep(LOOK_SECONDS)
            self.log.look()
            now = time.monotonic()
            if now - tidied > TIDY_SECONDS:
                await asyncio.to_thread(self._tidied, self.janitor.tidy)
                tidied = time.monotonic()
            if now - said > SAY_SECONDS:
                said = now
                self._say(now - began)
        self.findings.add("broker", f"it died:\n{self.broker.output_tail()}")

    def _tidied(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told, whatever it is
            self.findings.add("janitor", repr(error))

    def _say(self, seconds: float) -> None:
        resident = self.broker.resident_bytes() if self.broker.is_running() else 0
        print(
            f"{seconds:6.0f} s: {self.attack.sent} frames, {self.attack.sent / seconds:.0f}/s,"
            f" {sum(self.attack.answers.counts.values())} answers,"
            f" {resident / MEGABYTE:.0f} MB resident",
            flush=True,
        )

    def _await_memory(self) -> None:
        """Everybody but the controls has left: what was theirs has to go, too."""
        if not self.broker.is_running():
            return
        self._tidied(self.janitor.clean)
        most = self.outcome.resident_before + self.settings.most_left_bytes
        time.sleep(EXPIRY_SECONDS)
        deadline = time.monotonic() + RETURN_SECONDS
        while self.broker.resident_bytes() > most and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        self.outcome.resident_after = self.broker.resident_bytes()
        self.outcome.resident_peak = self.broker.peak_resident_bytes()
        os.kill(self.broker.pid, signal.SIGUSR2)
        deadline = time.monotonic() + RETURN_SECONDS
        while not self.log.memory and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            self.log.look()

    def _start_again(self) -> None:
        if not self.broker.is_running():
            return
        try:
            code = self.broker.stop()
            if code:
                self.findings.add("broker", f"it stopped with exit code {code}")
            self.broker.start()
        except BrokerError as error:
            self.findings.add("broker", str(error))
            return
        if self.settings.with_controls:
            self.outcome.ledger_records = compare(
                self.broker.bootstrap, self.outcome.report, self.findings
            )
        self.broker.stop()

    def _judge(self) -> None:
        self.log.close()
        settings, outcome = self.settings, self.outcome
        garbage = self.log.memory.get("garbage", {})
        kept = {name: count for name, count in garbage.items() if name in KEPT_TYPES}
        if kept:
            self.findings.add("garbage", f"what only the collector could free: {kept}")
        left = outcome.resident_after - outcome.resident_before
        if left > settings.most_left_bytes:
            self.findings.add("memory", f"{left / MEGABYTE:.1f} MB more than before are resident")
        p99 = outcome.report.quantile_ms(0.99)
        if settings.slowest_ms is not None and p99 > settings.slowest_ms:
            self.findings.add("latency", f"p99 of Metadata is {p99:.1f} ms")
