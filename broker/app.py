"""One broker: what it consists of, how it starts and how it stops.

Start, in this order: take the addresses, lock the log directories, open the metadata store, load
the logs (recovering what a crash left), register, run for controller, hear from the controller who
leads what, and only then accept connections: a client never sees half a broker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from functools import partial
from typing import TYPE_CHECKING

from broker.cluster.admission import StartAbandonedError, describe_broker, unless_stopped
from broker.cluster.cluster import Cluster
from broker.cluster.control_request_queue import ControlRequestQueue
from broker.cluster.deleted_topics import forget_deleted_topics
from broker.coordinators.groups import GroupCoordinators
from broker.coordinators.internal_topics import GROUP_KEY, InternalTopics
from broker.coordinators.marker_sender import MarkerSender
from broker.coordinators.peers import Peers
from broker.coordinators.producer_id_blocks import ProducerIdBlocks
from broker.coordinators.transactions import TransactionCoordinators
from broker.fetch.fetch_sessions import FetchSessions
from broker.handlers import all_handlers
from broker.maintenance.failed_disks import FailedDisks
from broker.maintenance.housekeeping import Housekeeping
from broker.maintenance.log_cleaner import LogCleaner
from broker.metadata.auto_topics import AutoTopics
from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.metadata_cache import MetadataCache
from broker.metadata.topic_configs import TopicConfigs
from broker.metrics.optional_metrics import wanted_metrics
from broker.network.connection_quotas import ConnectionQuotas, configured_limits
from broker.network.connection_services import connection_services
from broker.network.listener import ListenError, Listeners
from broker.partitions.replicas import Replicas
from broker.reconfiguration import reconfigure
from broker.runtime import failpoints
from broker.runtime.compute_pool import ComputePool
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.open_files import OpenFiles
from broker.runtime.platform import LocalPlatform, Platform
from broker.runtime.shutdown import take_all
from broker.runtime.slices import Turns
from broker.runtime.supervision import Supervision
from broker.runtime.timers import Timers
from broker.startup.disk import (
    StartError,
    adopt,
    load_logs,
    open_directories,
    open_store,
    store_patience,
)
from config.errors import ConfigError
from config.listeners import read_listeners
from controller.brokers.producer_ids import allocate_producer_ids
from controller.brokers.registrar import BrokerIdTakenError, Registrar
from controller.controller import Controller
from controller.metadata_store.store import StoreError
from controller.topics.topics import Chance, TopicCommands
from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from broker.runtime.shutdown import Step
    from config.broker import BrokerConfig
    from config.topic import TopicConfig
    from controller.metadata_store.store import MetadataStore
    from storage.directory.directories import LogDirectories

logger = logging.getLogger(__name__)

DISK_THREADS = 4
REPLICAS, REPLICA_THREADS = "replicas", 2
"""Write what followers fetch in large pieces."""
SESSIONS_TO_WAIT = 2
"""How many session timeouts a broker waits for a node that its earlier life left behind."""
SESSION_EVICTION_MS = 120_000
"""A fetch session that rested for so long makes room for a new one (as in Apache)."""


class Broker:
    """The parts of a running broker, by name; handlers reach everything through it."""

    logs: LogDirectories
    store: MetadataStore
    cluster_id: str
    topic_configs: TopicConfigs
    broker_configs: BrokerConfigs
    cluster: Cluster
    replicas: Replicas
    open_files: OpenFiles
    limits: ConnectionQuotas
    control: ControlRequestQueue
    """Takes what the controller says, in its order."""
    controller: Controller
    topics: TopicCommands
    auto_topics: AutoTopics
    internal_topics: InternalTopics
    groups: GroupCoordinators
    transactions: TransactionCoordinators
    producer_ids: ProducerIdBlocks
    endpoints: dict[str, tuple[str, int]]
    """Advertised host and port by listener name."""

    def __init__(self, config: BrokerConfig, platform: Platform | None = None) -> None:
        """Make a broker that `run` will start. Call it on the event loop."""
        assert all_handlers.MODULES
        self.config = config
        self._platform = platform or LocalPlatform()
        self.clock = self._platform.clock
        self._loop = asyncio.get_running_loop()
        self.timers = Timers(self._loop)
        self.supervision = Supervision(self.timers, self.clock)
        self.spawn = self.supervision.spawn
        self.call_soon = self._loop.call_soon_threadsafe
        self.slices = Turns(self._platform.stopwatch).slices
        note = self.supervision.note
        self._background = BackgroundLoop(self.clock, self.timers, self.spawn, self.slices, note)
        self.metadata = MetadataCache()
        self.metadata.on_failure = self.timers.on_failure = note
        self.fetch_sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots,
            SESSION_EVICTION_MS,
            lambda: secrets.randbelow(2**31 - 1) + 1,
        )
        self.endpoints = {}
        self._metrics = wanted_metrics(self)
        self._listeners = Listeners(
            connection_services(config, self._metrics.dispatcher, self.clock, self.call_soon),
            self.timers,
        )
        self._executor = self._platform.threads(DISK_THREADS, "disk")
        self.compute_pool = ComputePool(self._loop, self._platform)
        self.replica_threads = self._platform.threads(REPLICA_THREADS, REPLICAS)
        self._stop = asyncio.Event()
        self._housekeeping: Housekeeping | None = None
        self.cleaner: LogCleaner | None = None
        self._failure: str | None = None
        self.broker_epoch = -1
        """Of this life of the broker: the transaction that registered it."""

    @property
    def is_in_cluster(self) -> bool:
        """Whether there may be other brokers."""
        return bool(self.config.zookeeper_connect)

    @property
    def _is_leave_wanted(self) -> bool:
        return self.is_in_cluster and self.config.controlled_shutdown_enable

    def stop(self) -> None:
        """Begin to stop; `run` returns when it is done."""
        self._stop.set()

    def give_up(self, reason: str) -> None:
        """Stop as one that cannot go on: `run` raises StartError in the end. From any thread."""
        self._failure = reason
        self.call_soon(self._stop.set)

    async def run(self) -> None:
        """Start, serve until `stop`, and stop. Raises StartError."""
        async with asyncio.TaskGroup() as group:
            self.supervision.group = group
            try:
                await self._start_or_refuse()
                await self._stop.wait()
            except StartAbandonedError as reason:
                logger.info("%s", reason)
            except StartError as error:
                self._failure = str(error)
            finally:
                await self._shut_down()
        if self._failure is not None:
            raise StartError(self._failure)

    async def _start_or_refuse(self) -> None:
        """Start; a disk that fails meanwhile is a reason in one line, like any other."""
        try:
            await self._start()
        except (StoreError, LogDirectoryError) as error:
            raise StartError(str(error)) from None

    async def _start(self) -> None:
        started_ms = self.clock.monotonic_ms()
        config = self.config
        limit = self._platform.open_files_limit()
        self.open_files = OpenFiles(limit, config.reserved_file_descriptors, self.clock)
        await self._bind()
        disk = self.open_files.disk(self._platform.filesystem)
        self.logs = await open_directories(config, self._executor, disk)
        self.logs.on_failure = FailedDisks(self).note
        self.logs.on_exhaustion = self.open_files.note_exhaustion
        opened = await unless_stopped(
            self._stop, open_store(config, self.logs, self._executor, self._platform)
        )
        self.store, self.cluster_id = opened.store, opened.cluster_id
        self.config = config = config.identified(opened.broker_id)
        keep = self.supervision.keep
        self.topic_configs = TopicConfigs(self.store, config.topic_defaults(), keep)
        self.broker_configs = BrokerConfigs(config, self.topic_configs.dynamic)
        await self._step(self.topic_configs.start)
        await self._step(lambda: self.broker_configs.load(self.store))
        self.config = config = self.broker_configs.current
        await self.topic_configs.apply_defaults(config.topic_defaults(), ())
        config_of = self.topic_configs.topic_config
        await self._loop.run_in_executor(
            self._executor, load_logs, self.logs, config_of, self.clock, self._stop.is_set
        )
        if opened.is_new:
            await adopt(config, self.logs, self.store)
        await self._wire()
        await self._step(self._register)
        self.cluster.start()
        self.supervision.keep("control requests", self.control.run)
        if self.is_in_cluster:
            self.metadata.is_awaited = True
            await self._serve()  # the controller may be another broker, and must be heard
        self.supervision.keep("controller", self.controller.run)
        await unless_stopped(self._stop, self._hear_from_controller())
        self.groups.start()
        self.transactions.start()
        self._begin_upkeep()
        if not self.is_in_cluster:
            await self._serve()
        took_ms = self.clock.monotonic_ms() - started_ms
        shown = ", ".join(
            f"{name}://{host}:{port}" for name, (host, port) in self.endpoints.items()
        )
        logger.info("broker %d ready on %s in %d ms", config.broker_id, shown, took_ms)

    async def _step(self, step: Callable[[], Awaitable[None]]) -> None:
        """Do what needs the store, again if the connection to it breaks meanwhile."""
        await unless_stopped(self._stop, store_patience(self.config, self.store).do(step))

    def _begin_upkeep(self) -> None:
        self._housekeeping = Housekeeping(
            self.config, self.logs, self._background, self._executor, self.replicas.note_starts
        )
        self._housekeeping.start()
        if self.config.log_cleaner_enable:
            self.cleaner = LogCleaner(
                self.config, self.logs, self._background, self._executor, self.supervision
            )
            self.cleaner.start()
        self._metrics.serve(self._listeners, self._housekeeping, self.cleaner)

    async def _register(self) -> None:
        self.broker_epoch = await self._registrar.ensure()

    async def _register_again(self) -> None:
        try:
            await self._register()
        except BrokerIdTakenError as error:
            self.give_up(str(error))
            raise

    async def _hear_from_controller(self) -> None:
        """Wait until somebody is controller and this broker knows what that one said."""
        await self.controller.wait_until_ready()
        await self.metadata.wait_until(lambda: self.metadata.is_alive(self.config.broker_id))
        await self.control.wait_until_applied()
        self.metadata.settle()

    async def _wire(self) -> None:
        """Make the parts that need the store and the logs."""
        config = self.config
        store = self.store
        self.cluster = Cluster(self)
        self.replicas = Replicas(self.logs, self.topic_configs, self.cluster.surroundings())
        self.control = ControlRequestQueue(
            self.replicas, self.metadata, self.topic_configs, self.slices, self.timers
        )
        self.controller = Controller(
            config.broker_id,
            store,
            self.cluster.channels(self.control),
            self.clock.now_ms,
            self.slices,
        )
        self._registrar = Registrar(
            store,
            config.broker_id,
            lambda: describe_broker(config, self.endpoints, self.clock.now_ms()),
            SESSIONS_TO_WAIT * config.zookeeper_session_timeout_ms,
        )
        self.controller.before_election = self._register_again
        self.controller.on_failure = self.supervision.note
        store.on_interruption(self.controller.interrupted)
        most = config.max_new_partitions_per_request
        chance = Chance(secrets.randbelow, secrets.token_bytes)
        self.topics = TopicCommands(store, chance, most, self.slices)
        self.auto_topics = AutoTopics(config, self.metadata, self.topics, self.spawn)
        self.internal_topics = InternalTopics(config, self.metadata, self.auto_topics, self.spawn)
        self.groups = GroupCoordinators(
            config, self._background, lambda: self.internal_topics.partition_count(GROUP_KEY)
        )
        self.producer_ids = ProducerIdBlocks(lambda: allocate_producer_ids(store, config.broker_id))
        peers = Peers(self)
        self.transactions = TransactionCoordinators(
            config,
            self._background,
            self.producer_ids,
            MarkerSender(
                peers,
                self.clock,
                self.timers,
                failpoints.armed(os.environ),
            ),
            peers,
        )
        self.replicas.on_leadership_change(self.groups.partition_changed)
        self.replicas.on_leadership_change(self.transactions.partition_changed)
        self.topic_configs.on_change(self._apply_topic_config)
        self.metadata.on_update(
            partial(forget_deleted_topics, self.logs, self.topic_configs, self.groups)
        )
        await reconfigure(self, self.broker_configs.current)
        self.broker_configs.on_change(partial(reconfigure, self))

    async def _bind(self) -> None:
        config = self.config
        try:
            listeners = read_listeners(config)
            self.limits = await unless_stopped(self._stop, configured_limits(config))
            self.limits.files = self.open_files
            self._listeners.limits = self.limits
            ports = {}
            for endpoint in listeners.bound:
                ports[endpoint.name] = await self._listeners.bind(endpoint, config)
            await self._loop.run_in_executor(self._executor, self._metrics.bind)
        except (ConfigError, ListenError) as error:
            raise StartError(str(error)) from None
        for endpoint in listeners.advertised:
            host = endpoint.host or socket.gethostname()
            self.endpoints[endpoint.name] = host, endpoint.port or ports[endpoint.name]

    async def _serve(self) -> None:
        try:
            await self._listeners.serve()
        except ListenError as error:
            raise StartError(str(error)) from None
        self._listeners.look_after_idle(self.config.connections_max_idle_ms)

    async def _shut_down(self) -> None:
        """Undo what was done, in the opposite order, however far the start came."""
        started_ms = self.clock.monotonic_ms()
        await take_all(self._last_steps())
        if self._housekeeping is not None:
            logger.info("stopped in %d ms", self.clock.monotonic_ms() - started_ms)

    def _last_steps(self) -> Iterator[Step]:
        if self._housekeeping is not None and self._is_leave_wanted:
            yield "handing leadership over", self.cluster.leave
        yield "closing the timers", self.timers.close
        yield "closing the listeners", self._listeners.close
        yield "closing the metrics", self._metrics.close
        if self._housekeeping is not None:
            yield "stopping housekeeping", self._housekeeping.stop
        for part in ("cluster", "transactions", "groups"):
            if hasattr(self, part):
                yield f"stopping {part}", getattr(self, part).stop
        yield "cancelling tasks", self.supervision.close
        if hasattr(self, "store"):
            yield "closing the metadata store", self.store.close
        yield "closing side work", self.compute_pool.close
        yield (
            "closing replicas' threads",
            partial(self.replica_threads.shutdown, cancel_futures=True),
        )
        yield "closing threads", self._executor.shutdown
        if hasattr(self, "logs"):
            thread = self._platform.threads(1, "closing logs")
            close = partial(self._loop.run_in_executor, thread, self.logs.close)
            yield "closing the logs", close

    async def _apply_topic_config(self, topic: str, config: TopicConfig) -> None:
        if config.unclean_leader_election_enable:
            self.controller.allow_unclean()
        partitions = list(self.replicas.by_topic.get(topic, {}).values())
        async for partition in self.slices().each(partitions):
            partition.log.config = config
            partition.config_changed()
