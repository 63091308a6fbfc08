"""Brokers in one process: started, killed, cut off and brought back as the schedule has it."""

from __future__ import annotations

import contextvars
from concurrent.futures import Executor, Future
from random import Random
from typing import TYPE_CHECKING, Any

from broker.app import Broker
from broker.partitions.group_commit import POOL
from broker.runtime.timers import Timers
from broker.startup.logs import REPLICAS
from broker.startup.start_error import StartError
from config.broker import BrokerConfig
from controller.znodes import CONTROLLER, decode_controller
from tests.simulation.checks.promptness import Promptness
from tests.simulation.machine.disk import SimulatedDisk
from tests.simulation.machine.ensemble import SimulatedZooKeeper
from tests.simulation.machine.hosts import HOST, Host
from tests.simulation.machine.network import Network

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping

    from broker.partitions.partition import Partition
    from controller.metadata_store.store import MetadataStore
    from controller.zookeeper.security import ZooKeeperSecurity
    from tests.simulation.machine.virtual_loop import VirtualLoop

PORT = 9092
EPOCH_MS = 1_795_000_000_000


GRAVEYARD: list[object] = []
"""References to killed coroutines: if collected, they would run their last words."""


class LoopClock:
    """Both clocks from the loop's; a broker's wall clock may be off."""

    def __init__(self, loop: VirtualLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return EPOCH_MS + int(self._loop.now * 1000) + self.skew_ms

    def monotonic_ms(self) -> int:
        return int(self._loop.now * 1000)


SLOW_SECONDS = (0.0, 0.001, 0.3)
"""Possible waits of a write or a flush for its thread: at most those of a busy disk."""


QUIET_SECONDS = 0.001
"""The longest wait for a thread once faults are over.

A replica is written in pieces as small as a batch. On a busy disk, one that is thousands of them
behind would need longer to catch up than a run gives it.
"""


STEP_SECONDS = (0.0, 0.001, 0.02)
"""Possible durations of a step of long work, as its slices measure it."""


class InlineExecutor(Executor):
    """Threads without threads: the work is done a moment later, on the loop."""

    def __init__(self, cluster: SimulatedCluster, delays: Random | None = None) -> None:
        self._cluster = cluster
        self._loop = cluster.loop
        self._delays = delays

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()

        def work() -> None:
            try:
                done.set_result(fn(*args, **kwargs))
            except Exception as error:
                done.set_exception(error)

        delay = self.delay()
        if delay:
            self._loop.call_later(delay, work)
        else:
            self._loop.call_soon(work)
        return done

    def delay(self) -> float:
        """Return the seconds for which the next piece of work waits for a thread."""
        if self._delays is None:
            return 0.0
        longest = max(SLOW_SECONDS) if self._cluster.are_disks_busy else QUIET_SECONDS
        return min(self._delays.choice(SLOW_SECONDS), longest)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to wait for."""


class SimulatedPlatform:
    """`broker.runtime.platform.Platform` of one broker."""

    def __init__(self, cluster: SimulatedCluster, disk: SimulatedDisk, clock: LoopClock) -> None:
        self._cluster = cluster
        self.clock = clock
        self.filesystem = disk
        self._steps = Random("steps")
        self._worked_seconds = 0.0

    def stopwatch(self) -> float:
        """Virtual time stands still while a callback works, yet long work must be interrupted."""
        self._worked_seconds += self._steps.choice(STEP_SECONDS)
        return self._worked_seconds

    def open_files_limit(self) -> None:
        return None

    def threads(self, count: int, name: str) -> Executor:
        delays = Random(name) if name in {REPLICAS, POOL} else None
        return InlineExecutor(self._cluster, delays)

    def timers(self, loop: asyncio.AbstractEventLoop) -> Timers:
        return Timers(loop)

    def look_up_advertised(self, hosts: Mapping[str, str]) -> None:
        """All are known: they are those of the network."""

    async def listen_on(self, host: str, port: int) -> Mapping[str, Any]:
        """The address, at which the simulated network listens."""
        return {"host": host, "port": port}

    async def connect(self, config: BrokerConfig, security: ZooKeeperSecurity) -> MetadataStore:
        return self._cluster.zookeeper.connect()


class Machine:
    """One broker's machine: its disk stays, its broker comes and goes."""

    def __init__(self, cluster: SimulatedCluster, number: int) -> None:
        self.cluster = cluster
        self.number = number
        self.name = f"broker-{number}"
        self.disk = SimulatedDisk(LoopClock(cluster.loop).now_ms)
        self.clock = LoopClock(cluster.loop, cluster.random.choice((0, 0, -5000, 5000)))
        self.host: Host | None = None
        self.broker: Broker | None = None
        self.lives = 0
        self.failure: BaseException | None = None

    @property
    def is_up(self) -> bool:
        return self.host is not None and not self.host.is_dead

    @property
    def is_stopping(self) -> bool:
        """Return whether it is in a controlled shutdown; until that is done, it is up."""
        return self.is_up and self.broker is not None and self.broker.is_stopping

    def start(self) -> None:
        """Begin a new life."""
        assert not self.is_up
        self.lives += 1
        self.host = Host(self.name, self)
        self.cluster.network.hosts[self.name] = self.host
        context = contextvars.copy_context()
        context.run(HOST.set, self.host)
        self.cluster.loop.create_task(self._live(self.host), context=context)

    async def _live(self, host: Host) -> None:
        platform = SimulatedPlatform(self.cluster, self.disk, self.clock)
        broker = self.broker = Broker(self.cluster.config(self.number), platform)
        try:
            await broker.run()
        except StartError as error:
            self.cluster.note(f"{self.name} does not start: {error}")
        finally:
            self.cluster.network.kill(host, power=False)
            self.disk.end_life()

    def kill(self, *, power: bool = False) -> None:
        """End the process, or the machine, at once."""
        assert self.host is not None
        self.cluster.network.kill(self.host, power=power)
        if power:
            self.disk.lose_power(self.cluster.random)
        else:
            self.disk.end_life()
        GRAVEYARD.append(self.broker)
        for task, host in self.cluster.loop.hosts_of_tasks.items():
            if host is self.host:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                GRAVEYARD.append(task)
        self.broker = None

    def stop(self) -> None:
        """Have it stop in order."""
        if self.broker is not None:
            self.broker.stop()


class SimulatedCluster:
    """Machines, network and ZooKeeper of one run."""

    def __init__(self, loop: VirtualLoop, random: Random, size: int, **keys: Any) -> None:
        self.loop = loop
        self.random = random
        self.keys = keys
        low = random.choice((0.1, 0.5, 2.0))
        self.network = Network(loop, random, (low, low * random.choice((1.5, 4.0, 20.0))))
        loop.network = self.network
        self.session_seconds = random.choice((2.0, 4.0, 6.0))
        self.zookeeper = SimulatedZooKeeper(self.network, self.session_seconds)
        self.promptness = Promptness(self)
        self.length_choices = 1
        """Number of value lengths that its producers may draw from."""
        self.beat_seconds = 0.0
        """Set if producers send in step, so that what they wait for comes at one moment."""
        self.last_thaw = 0.0
        """Time at which the last frozen host ran again, or will."""
        self.are_disks_busy = True
        """Until all faults are over."""
        self.trace: list[str] = []
        self.machines = [Machine(self, number) for number in range(size)]

    @property
    def calm_since(self) -> float:
        """Return the time since which no host has been cut off or asleep."""
        return max(self.network.last_cut, self.last_thaw)

    def note(self, text: str) -> None:
        """One line of the trace."""
        self.trace.append(f"{self.loop.now:10.3f} {text}")

    def config(self, number: int) -> BrokerConfig:
        """Return the configuration of a broker."""
        values: dict[str, Any] = {
            "broker_id": number,
            "listeners": (f"PLAINTEXT://broker-{number}:{PORT}",),
            "advertised_listeners": (f"PLAINTEXT://broker-{number}:{PORT}",),
            "log_dirs": (f"/data-{number}",),
            "zookeeper_connect": "zookeeper:2181",
            "default_replication_factor": min(3, len(self.machines)),
            "min_insync_replicas": 2,
            "offsets_topic_num_partitions": 2,
            "log_cleaner_enable": False,
            "replica_lag_time_max_ms": 3000,
            "replica_fetch_wait_max_ms": 200,
            "replica_fetch_backoff_ms": 100,
            "replica_socket_timeout_ms": 3000,
            "controller_socket_timeout_ms": 3000,
            "zookeeper_session_timeout_ms": int(self.session_seconds * 1000),
            "log_segment_bytes": 4096,
            "log_index_size_max_bytes": 1024,
            "log_flush_offset_checkpoint_interval_ms": 1000,
            "replica_high_watermark_checkpoint_interval_ms": 1000,
            "auto_leader_rebalance_enable": False,
            **self.keys,
        }
        return BrokerConfig(**values)

    def start_all(self) -> None:
        """Start every machine that is down."""
        for machine in self.machines:
            if not machine.is_up:
                machine.start()

    def controller(self) -> Machine | None:
        """The machine whose broker is the controller, by what stands in ZooKeeper."""
        node = self.zookeeper.ensemble.tree.nodes.get(CONTROLLER)
        return None if node is None else self.machines[decode_controller(node.data)]

    def brokers(self) -> Iterator[tuple[Machine, Broker]]:
        """Brokers that run."""
        for machine in self.machines:
            if machine.is_up and machine.broker is not None:
                yield machine, machine.broker

    def partitions(self) -> Iterator[tuple[Machine, Partition]]:
        """All replicas on brokers that run."""
        for machine, broker in self.brokers():
            if broker.services is not None:
                for partition in broker.services.replicas:
                    yield machine, partition

    def leads(self, number: int, at: tuple[str, int]) -> bool:
        """Return whether a broker believes that it leads a partition."""
        return any(
            machine.number == number and (one.topic, one.index) == at and one.is_leader
            for machine, one in self.partitions()
        )
