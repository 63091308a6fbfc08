"""One broker through all its lives, on the event loop that hosts it.

Every public coroutine is an operation that a test may ask for, with arguments and results that can
be sent to another process; `engines` carry them there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
from typing import TYPE_CHECKING

from broker.app import Broker
from broker.embedded import operations
from broker.embedded.errors import EmbeddedBrokerError, NotReachedError
from broker.embedded.faults.active_faults import ActiveFaults
from broker.embedded.faults.interposition import Interposition
from broker.embedded.faults.sent_requests import SentRequest, SentRequests
from broker.embedded.machine.cuttable_network import EmbeddedLoop
from broker.embedded.machine.disk import EmbeddedDisk
from broker.embedded.machine.log_lines import OWNER, LogLines
from broker.embedded.machine.platform import EmbeddedPlatform
from broker.embedded.machine.turned_time import STEPS, TurnedClock, TurnedTime, turn
from broker.embedded.machine.turned_timers import TurnedTimers
from broker.embedded.settings import OWN_LISTENER
from broker.runtime.timers import Timers
from broker.startup.start_error import StartError
from config.errors import ConfigError
from config.loader import load_broker_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.embedded.faults.fault import Fault
    from broker.embedded.settings import BrokerSettings
    from broker.embedded.stored_records import LogPiece
    from broker.requests.services import BrokerServices
    from controller.metadata_store.store import MetadataStore

logger = logging.getLogger(__name__)

POLL_MS = 5
NO_EPOCH = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Surroundings:
    """Objects that exist before a broker, and outlive it."""

    lines: LogLines
    turned: TurnedTime
    store: Callable[[], MetadataStore] | None = None
    """Opens the metadata store of a cluster; None for a broker that is alone."""
    end_session: Callable[[], None] = lambda: None
    """Has the cluster's store know at once that the broker was killed."""


class HostedBroker:
    """Starts, stops, kills and mistreats one broker, and asks it things."""

    def __init__(self, settings: BrokerSettings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._surroundings = surroundings
        self._faults = ActiveFaults()
        self._sent = SentRequests()
        self._disk = EmbeddedDisk()
        self._broker: Broker | None = None
        self._life: asyncio.Task[None] | None = None
        self._timers: TurnedTimers | None = None
        """Timers that are advanced; None if the loop is."""

    # Its life

    async def start(self) -> None:
        """Begin a life; returns when it serves. Raises EmbeddedBrokerError."""
        if self._life is not None and not self._life.done():
            raise EmbeddedBrokerError(f"{self._name} runs already")
        OWNER.set(self._surroundings.lines)
        self._surroundings.lines.is_muted = False
        self._disk = EmbeddedDisk(is_full=self._disk.is_full)
        broker = self._broker = self._make()
        serves = asyncio.Event()
        broker.on_ready = serves.set
        living = self._live(broker, self._disk, serves)
        life = self._life = asyncio.get_running_loop().create_task(living)
        await serves.wait()
        if life.done():
            raise EmbeddedBrokerError(broker.failure or f"{self._name} ended while it started")

    async def stop(self) -> None:
        """Have it stop in order; nothing happens if it does not run."""
        if self._broker is not None and self._life is not None:
            self._broker.stop()
            await self._life

    async def kill(self) -> None:
        """End it as SIGKILL does: written data stays, and it does nothing more."""
        if self._broker is not None and self._life is not None:
            self._surroundings.lines.is_muted = True
            self._disk.die()
            self._surroundings.end_session()
            self._broker.abandon()
            await self._life

    async def is_running(self) -> bool:
        """Return whether it runs; it may have ended by itself, as when its last disk failed."""
        return self._life is not None and not self._life.done()

    async def failure(self) -> str | None:
        """Reason why it ended by itself."""
        return None if self._broker is None else self._broker.failure

    # Asking

    async def create_topic(
        self, name: str, partitions: int, replication_factor: int, config: dict[str, str]
    ) -> None:
        """See `operations`."""
        services = self.services()
        await operations.create_topic(services, name, partitions, replication_factor, config)

    async def delete_topic(self, name: str) -> None:
        """See `operations`."""
        await operations.delete_topic(self.services(), name)

    async def topics(self) -> dict[str, int]:
        """The number of partitions of each topic, internal ones too."""
        topics = self.services().metadata.topics
        return {name: len(topic.partitions) for name, topic in sorted(topics.items())}

    async def leaders(self, topic: str) -> dict[int, int]:
        """Leader of each partition, as this broker knows; -1 for none."""
        found = self.services().metadata.topics.get(topic)
        return {} if found is None else {i: one.leader for i, one in found.partitions.items()}

    async def leads_in(self, topic: str, partition: int) -> int:
        """The leader epoch in which it leads a partition, as far as it knows; -1 if it does not."""
        found = self.services().replicas.partition(topic, partition)
        return found.leader_epoch if found is not None and found.is_leader else NO_EPOCH

    async def read(self, topic: str, partition: int, is_committed_only: bool) -> list[LogPiece]:
        """Records of a partition of which this broker has a replica."""
        return await operations.read_partition(
            self.services(), topic, partition, is_committed_only=is_committed_only
        )

    async def committed_offsets(self, group: str) -> dict[tuple[str, int], int] | None:
        """See `operations`."""
        return await operations.committed_offsets(self.services(), group)

    async def end_offsets(self, partitions: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """See `operations`."""
        return operations.end_offsets(self.services(), partitions)

    async def wait_for(self, group: str, lag: int, timeout_seconds: float) -> None:
        """Wait until a group has committed all but `lag` records. Raises NotReachedError."""
        timers = self.services().timers
        clock = asyncio.get_running_loop().time
        until = clock() + timeout_seconds
        shown = "the group has committed nothing"
        while True:
            committed = await self.committed_offsets(group)
            if committed:
                ends = await self.end_offsets(list(committed))
                behind = {at: max(ends[at] - committed[at], 0) for at in ends}
                if sum(behind.values()) <= lag:
                    return
                shown = ", ".join(f"{t}-{i}: {n}" for (t, i), n in sorted(behind.items()) if n)
            if clock() > until:
                text = f"group {group} is not within {lag} records in {timeout_seconds:g} s"
                raise NotReachedError(f"{text}; lag: {shown}")
            await timers.sleep(POLL_MS)

    async def is_controller(self) -> bool:
        """Return whether this broker is the active controller."""
        return self.services().controller.is_active

    async def create_internal_topics(self) -> None:
        """See `operations`."""
        await operations.create_internal_topics(self.services())

    async def finalise_features(self) -> None:
        """See `operations`; for the active controller."""
        await operations.finalise_features(self.services())

    async def features(self) -> dict[str, int]:
        """The levels that the cluster works at, as far as this broker knows."""
        return dict(self.services().features.levels)

    async def live_brokers(self) -> list[int]:
        """The brokers that this one knows to be alive."""
        return sorted(self.services().metadata.brokers)

    async def log_lines(self) -> list[str]:
        """The newest of its log."""
        return self._surroundings.lines()

    async def fall_silent(self) -> None:
        """Log nothing more, until it is started again."""
        self._surroundings.lines.is_muted = True

    async def process_id(self) -> int:
        """Id of the process it runs in."""
        return os.getpid()

    # Mistreating

    async def advance(self, seconds: float, steps: int = STEPS) -> None:
        """Advance its clock, in about `steps` steps at most."""
        loop = asyncio.get_running_loop()
        timers = loop if isinstance(loop, EmbeddedLoop) else self._timers
        if timers is None:
            raise EmbeddedBrokerError(f"{self._name} was never started")
        await turn(self._surroundings.turned, seconds, timers, steps)

    async def fill_disk(self, is_full: bool) -> None:
        """Have its disk refuse, or take, what needs room."""
        self._disk.is_full = is_full

    async def cut_off_from(self, ports: set[int]) -> None:
        """Cut connections to these ports of other brokers, both ways; restore all others."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EmbeddedLoop)
        loop.cut_off_from(ports)

    async def add_fault(self, fault: Fault) -> int:
        """Set a fault; returns its number."""
        return self._faults.add(fault)

    async def remove_fault(self, number: int) -> None:
        """Take it back."""
        self._faults.remove(number)

    async def fault_count(self, number: int) -> int:
        """Number of requests it has struck."""
        return self._faults.count(number)

    async def wait_for_fault(self, number: int, count: int, timeout_seconds: float) -> None:
        """Wait until a fault has struck so often. Raises NotReachedError."""
        clock = asyncio.get_running_loop().time
        until = clock() + timeout_seconds
        while (now := self._faults.count(number)) < count:
            if clock() > until:
                text = f"{now} of {count} requests were struck in {timeout_seconds:g} s"
                raise NotReachedError(text)
            await self.services().timers.sleep(POLL_MS)

    async def restore(self) -> None:
        """Take all faults back, let the disk take things in, and have it run."""
        self._faults.clear()
        self._disk.is_full = False
        if self._life is not None and self._broker is not None and self._broker.failure is not None:
            await self._life  # it is about to end
        if not await self.is_running():
            await self.start()

    async def sent_requests(self) -> list[SentRequest]:
        """Requests that clients have sent."""
        return self._sent.all()

    async def forget_requests(self) -> None:
        """Forget the requests sent so far."""
        self._sent.clear()

    def services(self) -> BrokerServices:
        """The parts of the broker. Raises EmbeddedBrokerError if it does not run."""
        broker = self._broker
        if self._life is None or self._life.done() or broker is None or broker.services is None:
            why = "" if broker is None or broker.failure is None else f": {broker.failure}"
            raise EmbeddedBrokerError(f"{self._name} does not run{why}")
        return broker.services

    @property
    def _name(self) -> str:
        return f"broker {self._settings.broker_id} at {self._settings.bootstrap_server}"

    def _make(self) -> Broker:
        around = self._surroundings
        try:
            config, warnings = load_broker_config(self._settings.write())
        except ConfigError as error:
            raise EmbeddedBrokerError(str(error)) from None
        for warning in warnings:
            logger.warning("%s", warning)
        self._sent.bound(config.embedded_requests_kept, config.embedded_record_bytes_kept)
        clock = TurnedClock(around.turned)
        timers = self._make_timers()
        platform = EmbeddedPlatform(clock, self._disk, around.lines, timers, around.store)
        broker = Broker(config, platform)
        broker.interpose = Interposition(self._faults, self._sent, OWN_LISTENER)
        return broker

    def _make_timers(self) -> Timers:
        """Timers of a loop that can be advanced, else timers that can be advanced themselves."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, EmbeddedLoop):
            return Timers(loop)
        timers = self._timers = TurnedTimers(loop, self._surroundings.turned)
        return timers

    async def _live(self, broker: Broker, disk: EmbeddedDisk, serves: asyncio.Event) -> None:
        try:
            await broker.run()
        except StartError as error:
            broker.failure = str(error)
        finally:
            disk.unlock()
            serves.set()
