"""A few brokers' replicas of one topic in one process: real logs and handlers.

The test is the controller: it says who leads, and agrees to every in-sync set that is proposed.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import broker.handlers.records.fetch
import broker.handlers.records.list_offsets  # noqa: F401  (the handlers register themselves)
from broker.fetch.fetch_sessions import FetchSessions, SessionLimits
from broker.network.links import LinkError
from broker.partitions.replicas import Replicas
from broker.partitions.throttle import replication_throttles
from broker.replica_fetchers.fetch_requests import FetchLimits
from broker.replica_fetchers.fetcher import FetcherSettings
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from broker.replication.effects import Stored
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.runtime.clock import SystemClock
from broker.runtime.deferred import Deferred
from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.append.append_source import FROM_CLIENT
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from tests.broker.handlers.one_broker import as_bytes
from tests.broker.replica_fetchers.harness import surroundings
from tests.storage.produced import NOW_MS, TOPIC_ID, batch
from tests.support.broker_parts.arrival import arrival
from tests.support.broker_parts.disk_thread import DiskThread
from tests.support.broker_parts.services import Adapters, parts_in_memory
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine
    from pathlib import Path

    from broker.partitions.partition import Partition
    from broker.replication.effects import Proposal
    from protocol.schema import Request, Response

TOPIC = "flights"
LIMITS = FetchLimits(max_wait_ms=20, min_bytes=1, max_bytes=1 << 20, partition_max_bytes=1 << 16)
BACKOFF_MS = 5


class Agreement:
    """Agrees to every proposal, at once."""

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        partition.decided(
            proposal,
            ErrorCode.NONE,
            Stored(proposal.in_sync, proposal.leader_epoch, proposal.partition_epoch + 1),
        )


class TopicConfigs:
    """The same configuration for all topics."""

    def __init__(self) -> None:
        self.config = TopicConfig()

    def topic_config(self, topic: str) -> TopicConfig:
        return self.config


class Node:
    """A broker's part in replication."""

    def __init__(self, ensemble: Ensemble, node_id: int, directory: Path) -> None:
        self.id = node_id
        self.is_up = True
        config = BrokerConfig(broker_id=node_id)
        clock = SystemClock()
        settings = LogSettings(run_later=ensemble.disk_thread.run_later)
        self.logs = LogDirectories.open([str(directory)], Disk(LocalFileSystem()), settings)
        self.topic_configs = TopicConfigs()
        with disk_in_place():
            self.logs.load(self.topic_configs.topic_config)
        self.services = parts_in_memory(config, Adapters(clock, logs=self.logs)).services
        self.timers, self.metadata = self.services.timers, self.services.metadata
        self.throttles = replication_throttles(config, clock.monotonic_ms)
        around = surroundings(
            node_id, self.timers, clock, Agreement(), alive=ensemble.nodes.keys()
        )._replace(throttle=self.throttles.leader)
        self.replicas = Replicas(self.logs, self.topic_configs, around)
        identities = iter(range(1, 10_000))
        self.fetch_sessions = FetchSessions(
            SessionLimits(100, 10_000, 120_000), lambda: next(identities)
        )
        self.services.replicas, self.services.fetch_sessions = self.replicas, self.fetch_sessions
        fetching = FetcherSettings(
            local_id=node_id,
            broker_epoch=lambda: node_id + 100,
            limits=ensemble.limits,
            backoff_ms=BACKOFF_MS,
            clock=clock,
            timers=self.timers,
            disk_threads=ensemble.threads,
            throttle=self.throttles.follower,
        )
        self.following = ReplicaFetchers(ensemble, fetching, 1, ensemble.keep)
        self.replicas.on_assignment(self.following.partition_changed)

    @property
    def partition(self) -> Partition:
        return self.replicas.require(TOPIC, 0)

    @property
    def offsets(self) -> tuple[int, int]:
        """High watermark and log end offset."""
        log = self.partition.log
        return log.high_watermark, log.log_end_offset

    @property
    def stored(self) -> bytes:
        """Return all bytes of the log."""
        log = self.partition.log
        return b"".join(map(bytes, log.read_batches(log.log_start_offset, log.log_end_offset)))

    def append(self, count: int, value: bytes = b"value") -> None:
        records = memoryview(batch(count, value=value))
        self.partition.append_records(records, -1, FROM_CLIENT, NOW_MS)

    async def answer(self, request: Request, version: int) -> Response:
        cls = type(request)
        context = Context(self.services, version, None, "PLAINTEXT", "/127.0.0.1", "", NOW_MS)
        decoded = cls.decode(version, request.encode(version))
        answer: Any = ROUTES[int(cls.API_KEY)].handler(context, decoded)
        if isinstance(answer, Deferred):
            answer = await arrival(answer)
        encoded = b"".join(as_bytes(part) for part in answer.encode_parts(version))
        return cls.RESPONSE.decode(version, encoded)


class Wire:
    """A link that calls the other node's handlers."""

    def __init__(self, ensemble: Ensemble, node_id: int, purpose: str) -> None:
        self._ensemble = ensemble
        self._node_id = node_id
        self._purpose = purpose

    async def ask(self, request: Request, version: int) -> Response:
        node = self._ensemble.nodes[self._node_id]
        if not node.is_up:
            raise LinkError(f"broker {self._node_id} is down")
        response = await node.answer(request, version)
        if not node.is_up:
            raise LinkError(f"broker {self._node_id} went down")
        return response

    def close(self) -> None:
        self._ensemble.links.remove(self._purpose)


class Ensemble:
    """Nodes, and the links between them."""

    def __init__(self, directory: Path, count: int = 3, limits: FetchLimits = LIMITS) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        self.limits = limits
        self.threads = ThreadPoolExecutor(2)
        self.disk_thread = DiskThread()
        self.links: list[str] = []
        """Purposes of the open links."""
        self.nodes: dict[int, Node] = {}
        for node_id in range(count):
            self.nodes[node_id] = Node(self, node_id, directory / str(node_id))

    def __getitem__(self, node_id: int) -> Node:
        return self.nodes[node_id]

    def link(self, broker_id: int, purpose: str) -> Wire:
        assert "-fetcher-" in purpose
        self.links.append(purpose)
        return Wire(self, broker_id, purpose)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self.tasks.add(task)
        return task

    def keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[Any]:
        return self.spawn(work(), name)

    def lead(
        self, leader: int, isr: Collection[int], epoch: int, told: Collection[int] | None = None
    ) -> None:
        """Act as controller: `leader` leads; the nodes in `told`, or all that are up, get it."""
        for node in self.nodes.values():
            if not node.is_up or (told is not None and node.id not in told):
                continue
            state = LeaderAndIsrPartitionState(
                partition_index=0,
                controller_epoch=1,
                leader=leader,
                leader_epoch=epoch,
                isr=list(isr),
                partition_epoch=epoch * 100,
                replicas=list(self.nodes),
                is_new=True,
            )
            assert node.replicas.lead_or_follow(TOPIC, TOPIC_ID, state) is ErrorCode.NONE

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Wait, at most a minute."""
        async with asyncio.timeout(60):
            while not is_reached():
                await self[0].timers.sleep(2)

    async def until_equal(self, end: int) -> None:
        """Wait until all nodes that are up have everything to `end`, committed."""
        up = [node for node in self.nodes.values() if node.is_up]
        await self.until(lambda: all(node.offsets == (end, end) for node in up))
        assert len({node.stored for node in up}) == 1

    async def close(self) -> None:
        for node in self.nodes.values():
            node.following.stop()
        for task in self.tasks:
            task.cancel()
        failures = [
            result
            for result in await asyncio.gather(*self.tasks, return_exceptions=True)
            if isinstance(result, Exception)
        ]
        self.threads.shutdown()
        for node in self.nodes.values():
            self.disk_thread.submit(node.logs.close)
        self.disk_thread.shutdown()
        assert not failures, failures


def run_ensemble(
    directory: Path,
    scenario: Callable[[Ensemble], Coroutine[None, None, None]],
    limits: FetchLimits = LIMITS,
) -> None:
    """Run a scenario on three nodes."""
    unhandled: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
        ensemble = Ensemble(directory, limits=limits)
        try:
            await scenario(ensemble)
        finally:
            await ensemble.close()

    asyncio.run(main())
    assert not unhandled, unhandled
