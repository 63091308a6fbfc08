"""One broker without sockets: controller, metadata, replicas and logs, on stores in memory."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar, cast

from broker.cluster.control_request_queue import ControlRequestQueue
from broker.coordinators.producer_id_blocks import ProducerIdBlocks
from broker.handlers import all_handlers
from broker.metadata.auto_topics import AutoTopics
from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.metadata_cache import MetadataCache
from broker.metadata.topic_configs import TopicConfigs
from broker.partitions.replicas import Replicas
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.runtime.deferred import Deferred
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from controller.brokers.producer_ids import allocate_producer_ids
from controller.brokers.registration import create_skeleton, register_broker
from controller.controller import Controller
from controller.topics.topics import Chance, TopicCommands
from controller.znodes import BrokerRegistration, Endpoint
from protocol.schema import Request, Response
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from tests.broker.replica_fetchers.harness import surroundings
from tests.controller.breaking_store import BreakingStore
from tests.controller.harness import NOW_MS
from tests.controller.memory_store import MemoryEnsemble
from tests.support.arrival import arrival
from tests.support.disk_thread import DiskThread
from tests.support.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

assert all_handlers.MODULES, "they register themselves when they are imported"

BROKER_ID = 0
R = TypeVar("R", bound=Response)


def as_bytes(part: Any) -> bytes:
    """A part of a response; regions of log files are read."""
    return bytes(part.tobytes() if hasattr(part, "tobytes") else part)


class OneBroker:
    """As much of `broker.app.Broker` as the admin handlers see."""

    def __init__(self, directory: Path, config: BrokerConfig) -> None:
        loop = asyncio.get_running_loop()
        self.config = config
        self.cluster_id = "a-cluster"
        self.tasks: set[asyncio.Task[Any]] = set()
        self.timers = Timers(loop)
        self.store = BreakingStore(MemoryEnsemble())
        self.metadata = MetadataCache()
        self.disk_thread = DiskThread()
        settings = LogSettings(
            run_later=self.disk_thread.run_later,
            verifies_transactions=config.transaction_partition_verification_enable,
        )
        self.logs = LogDirectories.open([str(directory)], Disk(LocalFileSystem()), settings)
        self.topic_configs = TopicConfigs(self.store, config.topic_defaults(), self._keep)
        self.broker_configs = BrokerConfigs(config, self.topic_configs.dynamic)
        self.broker_configs.on_change(self._note_config)
        self.replicas = Replicas(
            self.logs, self.topic_configs, surroundings(BROKER_ID, self.timers)
        )
        self.channels = ControlRequestQueue(
            self.replicas, self.metadata, self.topic_configs, one_step_at_a_time, self.timers
        )
        self.controller = Controller(
            BROKER_ID, self.store, self.channels, lambda: NOW_MS, one_step_at_a_time
        )
        most = config.max_new_partitions_per_request
        chance = Chance(lambda _: 0, self._random_bytes)
        self.slices = one_step_at_a_time
        self.topics = TopicCommands(self.store, chance, most, self.slices)
        self.auto_topics = AutoTopics(config, self.metadata, self.topics, self.spawn)
        self.producer_ids = ProducerIdBlocks(lambda: allocate_producer_ids(self.store, BROKER_ID))
        self.topic_configs.on_change(self._apply_config)
        self._drawn = 0

    async def start(self) -> None:
        """Register, win the election, serve."""
        await create_skeleton(self.store)
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9092)
        await register_broker(self.store, BROKER_ID, BrokerRegistration((endpoint,), "r1"))
        await self.topic_configs.start()
        await self.broker_configs.load(self.store)
        self.logs.load(self.topic_configs.topic_config)
        self.spawn(self.channels.run(), "channels")
        self.spawn(self.controller.run(), "controller")
        await self.controller.wait_until_ready()
        await self.metadata.wait_until(lambda: bool(self.metadata.brokers))

    async def stop(self) -> None:
        """End everything."""
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        self.disk_thread.submit(self.logs.close)
        self.disk_thread.shutdown()
        failures = [r for r in results if isinstance(r, Exception)]
        assert not failures, failures

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a task until `stop`."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: coroutine.close())  # for one cancelled before it began
        return task

    def _keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.spawn(work(), name)

    async def settle(self, name: str) -> None:
        """Wait until the tasks of this name have ended."""
        await asyncio.gather(*[task for task in self.tasks if task.get_name() == name])

    async def ask(self, request: Request, version: int) -> Any:
        """Send a request through encoding, handler and encoding, as over the wire."""
        cls = type(request)
        route = ROUTES[int(cls.API_KEY)]
        assert version in route.versions
        context = Context(
            cast("Any", self),
            version,
            "a-client",
            "PLAINTEXT",
            "/127.0.0.1",
            "User:A",
            NOW_MS,
        )
        received = memoryview(bytearray(request.encode(version)))
        decoded = cls.decode(version, received)
        answer = route.handler(context, decoded)
        if isinstance(answer, Deferred):
            answer = await arrival(answer)
        encoded = b"".join(as_bytes(part) for part in answer.encode_parts(version))
        return cls.RESPONSE.decode(version, encoded)

    async def _note_config(self, config: BrokerConfig) -> None:
        self.config = config
        await self.topic_configs.apply_defaults(config.topic_defaults(), self.replicas.by_topic)

    async def _apply_config(self, topic: str, config: Any) -> None:
        for partition in self.replicas.by_topic.get(topic, {}).values():
            partition.log.config = config

    def _random_bytes(self, count: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(count, "big")


def run_broker(
    directory: Path,
    scenario: Callable[[OneBroker], Coroutine[None, None, None]],
    **keys: Any,
) -> None:
    """Run a scenario on a broker whose configuration differs from the default by `keys`."""

    async def main() -> None:
        broker = OneBroker(directory, BrokerConfig(**keys))
        await broker.start()
        try:
            await scenario(broker)
        finally:
            await broker.stop()

    logging.getLogger("controller").setLevel(logging.WARNING)
    asyncio.run(main())
