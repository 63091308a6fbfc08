"""An observer at work in virtual time, and servers of its quorum that are models."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.metadata_log.metadata_feed import MetadataFeed
from broker.metadata_log.metadata_observer import MetadataObserver, ObserverParts
from broker.metadata_log.settings import MetadataSettings, SnapshotSettings
from broker.network.broker_link import LinkLimits
from broker.network.links import LinkError
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from controller.image.loader import MetadataLoader
from controller.raft.requests import Replica, RequestLimits
from protocol.messages.fetch import FetchRequest
from tests.simulation.machine.virtual_loop import DeadlockError
from tests.storage.metadata_log.opened import SMALL, opened
from tests.storage.mortal import KilledError, MortalFileSystem
from tests.support.broker_parts.disk_thread import DiskThread
from tests.support.broker_parts.metadata_leader import CLUSTER
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.virtual_time import LoopClock, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    from broker.network.links import Address
    from controller.image.metadata_image import MetadataImage
    from controller.image.publishers import Publisher
    from protocol.schema import Request, Response
    from storage.metadata_log.metadata_log import MetadataLog, MetadataLogSettings
    from tests.support.broker_parts.metadata_leader import MetadataLeader

LEADER = ("leader", 9191)
OTHER = ("other", 9191)
WAIT_MS = 500


class ModelQuorum:
    """Servers by address; `broker.metadata_log.controller_links` without sockets.

    An answer takes a millisecond, or, if there is nothing to send, as long as the request allows.
    """

    def __init__(self, servers: dict[Address, MetadataLeader]) -> None:
        self.servers = servers
        self.is_closed = False

    async def ask(self, address: Address, request: Request) -> Response:
        server = self.servers.get(address)
        await asyncio.sleep(0.001)  # noqa: TID251  (in virtual time)
        if server is None:
            raise LinkError("nobody is there")
        response: Any = server.answer(request)
        if isinstance(request, FetchRequest) and is_idle(request, response):
            await asyncio.sleep(request.max_wait_ms / 1000)  # noqa: TID251  (in virtual time)
        return response  # type: ignore[no-any-return]

    def close(self) -> None:
        self.is_closed = True


def is_idle(request: FetchRequest, response: Any) -> bool:
    """Whether a leader would hold the answer back."""
    if response.error_code or response.responses[0].partitions[0].error_code:
        return False
    answer = response.responses[0].partitions[0]
    known = request.topics[0].partitions[0].high_watermark
    is_news = answer.diverging_epoch.epoch >= 0 or answer.snapshot_id.epoch >= 0
    return not (answer.records or is_news or known < answer.high_watermark)


class Follower:
    """An observer with its log in a directory."""

    def __init__(
        self,
        log: MetadataLog,
        quorum: ModelQuorum,
        publishers: Sequence[Publisher] = (),
        snapshots: SnapshotSettings | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.log = log
        self.tasks: list[asyncio.Task[None]] = []
        self.feed = MetadataFeed(log, MetadataLoader(), one_step_at_a_time)
        background = BackgroundLoop(LoopClock(), Timers(loop), self._spawn, one_step_at_a_time)
        settings = MetadataSettings(
            bootstrap=tuple(quorum.servers) or (LEADER,),
            voters={},
            links=LinkLimits(2000, 1 << 20),
            requests=RequestLimits(max_wait_ms=WAIT_MS, snapshot_max_bytes=150),
            log=SMALL,
            snapshots=snapshots or SnapshotSettings(),
            fetch_timeout_ms=2000,
            retry_backoff_ms=20,
        )
        parts = ObserverParts(log, self.feed, quorum, background, DiskThread(), lambda _: 0)
        replica = Replica(CLUSTER, 5, UUID(int=77))
        self.observer = MetadataObserver(replica, settings, parts, publishers)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work, name=name))

    @property
    def image(self) -> MetadataImage:
        return self.feed.loader.image

    async def run_for(self, milliseconds: int) -> None:
        """Follow for so long; raises what ends it before."""
        running = asyncio.get_running_loop().create_task(self.observer.run())
        done, _ = await asyncio.wait([running], timeout=milliseconds / 1000)
        if done:
            running.result()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def follow(
    directory: Path,
    quorum: ModelQuorum,
    milliseconds: int = 1000,
    log_settings: MetadataLogSettings = SMALL,
    **options: Any,
) -> Follower:
    """Follow for so long, and close; returns what then is there. `options` are of `Follower`."""

    async def scenario() -> Follower:
        log = opened(directory, log_settings, MortalFileSystem())
        follower = Follower(log, quorum, **options)
        try:
            await follower.run_for(milliseconds)
            await asyncio.gather(*follower.tasks)
        finally:
            await follower.observer.close()
        return follower

    return run_in_virtual_time(scenario())


def follow_and_die(directory: Path, quorum: ModelQuorum, steps: int | None) -> int:
    """Follow on a disk that dies after so many changes; returns how many there were."""
    filesystem = MortalFileSystem()
    filesystem.steps = steps

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)  # death, where a thread would have met it
        with suppress(KilledError):
            log = opened(directory, SMALL, filesystem)
            follower = Follower(log, quorum, snapshots=SnapshotSettings(300))
            await follower.run_for(1500)
            await asyncio.gather(*follower.tasks)
            await follower.observer.close()

    with suppress(DeadlockError):  # what died on a thread is waited for in vain
        run_in_virtual_time(scenario())
    return filesystem.taken
