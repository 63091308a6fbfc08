"""A broker without sockets: controller, metadata, replicas and logs, on stores in memory."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.runtime.deferred import Deferred
from broker.startup.parts import configure, put_together
from config.broker import BrokerConfig
from controller.brokers.registration import create_skeleton, register_broker
from controller.features.levels import FEATURES
from controller.znodes import BrokerRegistration, Endpoint
from protocol.schema import Request, Response
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from tests.controller.breaking_store import BreakingStore
from tests.controller.harness import NOW_MS
from tests.controller.memory_store import MemoryEnsemble
from tests.support.broker_parts.arrival import arrival
from tests.support.broker_parts.disk_thread import DiskThread
from tests.support.broker_parts.services import Adapters, StandingClock, foundation_in_memory
from tests.support.broker_parts.supervised import end

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from broker.runtime.clock import Clock

assert all_handlers.MODULES, "they register themselves when they are imported"

BROKER_ID = 0
R = TypeVar("R", bound=Response)


def as_bytes(part: Any) -> bytes:
    """A part of a response; regions of log files are read."""
    return bytes(part.tobytes() if hasattr(part, "tobytes") else part)


class OneBroker:
    """A broker's parts, of which those are started that its handlers need."""

    def __init__(self, directory: Path, config: BrokerConfig, clock: Clock | None = None) -> None:
        self.store = BreakingStore(MemoryEnsemble())
        self.disk_thread = DiskThread()
        settings = LogSettings(
            run_later=self.disk_thread.run_later,
            verifies_transactions=config.transaction_partition_verification_enable,
        )
        logs = LogDirectories.open([str(directory)], Disk(LocalFileSystem()), settings)
        adapters = Adapters(clock or StandingClock(), self.store, logs)
        self.foundation = foundation_in_memory(config.identified(BROKER_ID), adapters)
        self.parts = put_together(self.foundation)
        services = self.services = self.parts.services
        self.supervision = self.foundation.machine.supervision
        self.timers, self.spawn = services.timers, services.spawn
        self.logs, self.replicas, self.metadata = (
            services.logs,
            services.replicas,
            services.metadata,
        )
        self.topic_configs, self.broker_configs = services.topic_configs, services.broker_configs
        self.channels, self.controller = services.control, services.controller
        self.topics, self.producer_ids = services.topics, services.producer_ids

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """Return the running tasks."""
        return set(self.supervision._tasks)

    @property
    def config(self) -> BrokerConfig:
        """Return the current configuration."""
        return self.services.config

    async def start(self) -> None:
        """Register, win the election, serve."""
        await create_skeleton(self.store)
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9092)
        registration = BrokerRegistration((endpoint,), "r1", features=FEATURES)
        await register_broker(self.store, BROKER_ID, registration)
        await self.services.features.start()
        await self.topic_configs.start()
        await self.broker_configs.load(self.store)
        if self.services.acls is not None:
            await self.services.acls.start()
        await asyncio.get_running_loop().run_in_executor(
            self.disk_thread, self.logs.load, self.topic_configs.topic_config
        )
        await configure(self.foundation, self.parts)
        self.spawn(self.channels.run(self.parts.applied), "channels")
        self.spawn(self.controller.run(), "controller")
        await self.controller.wait_until_ready()
        await self.metadata.wait_until(lambda: bool(self.metadata.brokers))

    async def stop(self) -> None:
        """End everything; nothing may have failed unforeseen."""
        await end(self.supervision)
        self.services.compute_pool.close()
        self.disk_thread.submit(self.logs.close)
        self.disk_thread.shutdown()
        assert self.take_failures() == []

    def take_failures(self) -> list[str]:
        """Return the unforeseen failures since the last call."""
        failed = list(self.supervision.failures.elements())
        self.supervision.failures.clear()
        return failed

    async def settle(self, name: str) -> None:
        """Wait until the tasks of this name have ended."""
        await asyncio.gather(*[task for task in self.tasks if task.get_name() == name])

    async def ask(self, request: Request, version: int) -> Any:
        """Send a request through encoding, handler and encoding, as over the wire."""
        cls = type(request)
        route = ROUTES[int(cls.API_KEY)]
        assert version in route.versions
        context = Context(
            self.services,
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
