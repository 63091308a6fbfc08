"""A broker's parts, whole and not started: the real ones, on a machine of a test's own.

    parts_in_memory(BrokerConfig())             on a disk and a metadata store in memory
    parts_in_memory(config, Adapters(logs=…))   the same, on the logs of a test

No port is taken, nothing runs, and no thread begins before it is given work.
"""

from __future__ import annotations

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.group_configs import GroupConfigs
from broker.metadata.topic_configs import TopicConfigs
from broker.metrics.optional_metrics import Doors
from broker.network.connection_quotas import ConnectionQuotas
from broker.network.listener import Listeners
from broker.partitions.group_commit import GroupCommit
from broker.runtime.compute_pool import ComputePool
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.open_files import OpenFiles
from broker.runtime.platform import LocalPlatform
from broker.runtime.supervision import Supervision
from broker.runtime.timers import Timers
from broker.startup.addresses import Addresses, advertised_endpoints, by_name
from broker.startup.cluster_parts import Foundation
from broker.startup.listeners.authentication import Authentication
from broker.startup.listeners.protections import Protections
from broker.startup.logs import LogStorage
from broker.startup.machine import Machine, StopRequest
from broker.startup.metadata import OpenMetadata
from broker.startup.parts import Parts, put_together
from broker.startup.settings import Settings, acls_of, features_of
from broker.telemetry.subscriptions import Subscriptions
from config.listeners.endpoints import read_listeners
from controller.security.scram_credentials import ScramUsers
from controller.security.user_configs import UserConfigs
from controller.topics.topics import Chance
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.log.log_settings import LogSettings
from tests.controller.harness import NOW_MS
from tests.controller.memory_store import MemoryEnsemble
from tests.simulation.machine.disk import SimulatedDisk
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from broker.runtime.clock import Clock
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore

CLUSTER_ID = "a-cluster"
PORT = 9092
PLENTY = 1_000_000


class StandingClock:
    """Clock that stands still."""

    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return NOW_MS


class CountedBytes:
    """Random bytes that are 1, 2, 3, and so on; what is drawn by lot is always the first."""

    def __init__(self) -> None:
        self._drawn = 0

    def __call__(self, count: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(count, "big")


class TestedMachine(LocalPlatform):
    """This machine, at a time that the test sets."""

    __test__ = False

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock


def logs_in_memory() -> LogDirectories:
    """Return one empty log directory in memory."""
    disk = Disk(SimulatedDisk(lambda: NOW_MS))
    return LogDirectories.open(["/data"], disk, LogSettings())


def running_loop() -> asyncio.AbstractEventLoop:
    """The loop that runs; off any, one that is closed: parts can do what waits for nothing."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        loop.close()
        return loop


@dataclasses.dataclass
class Adapters:
    """Adapters that a test may replace."""

    clock: Clock = dataclasses.field(default_factory=StandingClock)
    store: MetadataStore = dataclasses.field(default_factory=lambda: MemoryEnsemble().connect())
    logs: LogDirectories = dataclasses.field(default_factory=logs_in_memory)
    loop: asyncio.AbstractEventLoop = dataclasses.field(default_factory=running_loop)
    given_up: list[str] = dataclasses.field(default_factory=list)
    """Reasons why the broker could not go on."""


def parts_in_memory(config: BrokerConfig, adapters: Adapters | None = None) -> Parts:
    """The parts of a broker, which a test may start one by one."""
    return put_together(foundation_in_memory(config, adapters or Adapters()))


def foundation_in_memory(config: BrokerConfig, adapters: Adapters) -> Foundation:
    """The stages below the parts."""
    machine = _machine(adapters)
    topics = TopicConfigs(adapters.store, config.topic_defaults(), machine.supervision.keep)
    users, scram_users = UserConfigs(adapters.store, topics.dynamic), ScramUsers()
    topics.dynamic.on_change(scram_users.changed)
    broker = BrokerConfigs(config, topics.dynamic)
    return Foundation(
        machine,
        _addresses(config, machine),
        LogStorage(
            adapters.logs,
            ThreadPoolExecutor(1),
            ThreadPoolExecutor(1),
            ComputePool(adapters.loop, machine.platform),
            GroupCommit(adapters.loop, machine.timers, machine.platform),
        ),
        OpenMetadata(machine, config, adapters.store, CLUSTER_ID, is_new=True),
        Settings(
            broker,
            topics,
            GroupConfigs(adapters.store, topics.dynamic, lambda: broker.current),
            Subscriptions(adapters.store, topics.dynamic),
            users,
            scram_users,
            features_of(config, adapters.store, machine),
            acls_of(config, adapters.store, machine),
        ),
    )


def _addresses(config: BrokerConfig, machine: Machine) -> Addresses:
    """Return the configured addresses, with no socket open."""
    configured = read_listeners(config)
    ports = {one.name: PORT for one in configured.bound}
    return Addresses(
        Listeners(machine.clock, machine.timers),
        ConnectionQuotas(PLENTY, PLENTY, {}),
        by_name(configured.bound),
        ports,
        advertised_endpoints(configured, ports),
        Protections(Authentication(machine), configured.inter_broker, machine),
        Doors(None, None),
        None,
    )


def _machine(adapters: Adapters) -> Machine:
    loop, clock = adapters.loop, adapters.clock
    timers = Timers(loop)
    supervision = Supervision(loop, timers, clock)
    timers.on_failure = supervision.note
    return Machine(
        TestedMachine(clock),
        loop,
        OpenFiles(None, -1, clock),
        timers,
        supervision,
        BackgroundLoop(clock, timers, supervision.spawn, one_step_at_a_time, supervision.note),
        Chance(lambda _: 0, CountedBytes()),
        StopRequest(asyncio.Event(), adapters.given_up.append),
    )
