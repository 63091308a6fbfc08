"""An observer of Apache's quorum, on an event loop in a thread of its own, and what it has."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.metadata_log.controller_links import ControllerLinks
from broker.metadata_log.metadata_feed import MetadataFeed
from broker.metadata_log.metadata_observer import MetadataObserver, ObserverParts
from broker.metadata_log.settings import metadata_settings
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.slices import Turns
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from controller.image.loader import MetadataLoader
from controller.raft.requests import Replica
from protocol.records.batch import iterate_headers
from protocol.uuids import to_base64
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from storage.metadata_log.metadata_log import MetadataLog

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from controller.image.metadata_image import MetadataImage
    from tests.support.brokers.broker_process import BrokerProcess

NODE_ID = 5
DIRECTORY_ID = UUID("12345678-1234-4234-8234-123456789abc")
JOIN_SECONDS = 60


class Observing:
    """Follows a node's quorum from `start` to `stop`; may be started again."""

    def __init__(self, directory: Path, node: BrokerProcess, **keys: Any) -> None:
        """`keys` are the observer's configuration."""
        self.directory = directory
        self._cluster_id = cluster_id_of(node)
        address = controller_address_of(node)
        self._config = BrokerConfig(controller_quorum_bootstrap_servers=(address,), **keys)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.caught_up_seconds = -1.0

    @property
    def metadata_directory(self) -> Path:
        """`__cluster_metadata-0`."""
        return self.directory / "__cluster_metadata-0"

    @property
    def image(self) -> MetadataImage:
        """The newest one."""
        return self.feed.loader.image

    @property
    def has_caught_up(self) -> bool:
        """For once, since the start."""
        return self.caught_up_seconds >= 0

    def start(self) -> None:
        """Open the log, and begin to follow."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = metadata_settings(self._config)
        place = LogDirectory(str(self.directory), Disk(LocalFileSystem()))
        self.log = MetadataLog.open(place, settings.log, LogSettings(), SystemClock().now_ms())
        slices = Turns(time.perf_counter).slices
        self.feed = MetadataFeed(self.log, MetadataLoader(), slices)
        self.caught_up_seconds = -1.0
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main(ready)))
        self._thread.start()
        assert ready.wait(JOIN_SECONDS)

    def stop(self) -> None:
        """End, and raise what ended it before."""
        if self._thread is None:
            return
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._running.cancel)
        self._thread.join(JOIN_SECONDS)
        assert not self._thread.is_alive()
        self._thread = None
        if self._error is not None:
            raise self._error

    async def _main(self, ready: threading.Event) -> None:
        self._loop = loop = asyncio.get_running_loop()
        settings = metadata_settings(self._config)
        with ThreadPoolExecutor(1) as threads:
            background = BackgroundLoop(
                SystemClock(), Timers(loop), self._spawn, Turns(time.perf_counter).slices
            )
            self._links = ControllerLinks(f"raft-client-{NODE_ID}", settings.links)
            parts = ObserverParts(self.log, self.feed, self._links, background, threads, _first)
            replica = Replica(self._cluster_id, NODE_ID, DIRECTORY_ID)
            self.observer = MetadataObserver(replica, settings, parts)
            self._running = loop.create_task(self.observer.run())
            began = time.perf_counter()
            noting = loop.create_task(self._note(began))
            ready.set()
            try:
                await self._running
            except asyncio.CancelledError:
                pass
            except Exception as error:  # noqa: BLE001 - raised by `stop`
                self._error = error
            noting.cancel()
            await self.observer.close()

    async def _note(self, began: float) -> None:
        await self.observer.caught_up.wait()
        self.caught_up_seconds = time.perf_counter() - began

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._task = self._loop.create_task(work, name=name)


def _first(_: int) -> int:
    return 0


def cluster_id_of(node: BrokerProcess) -> str:
    """Cluster id in the node's `meta.properties`."""
    return _properties(node.data_directory / "meta.properties")["cluster.id"]


def controller_address_of(node: BrokerProcess) -> str:
    """`host:port` of the node's controller listener."""
    listeners = _properties(node.directory / "server.properties")["listeners"]
    return listeners.rpartition("CONTROLLER://")[2]


def quorum_of(node: BrokerProcess) -> dict[str, str]:
    """Properties by which another node finds the quorum, in the way that the node itself has it."""
    lines = _properties(node.directory / "server.properties")
    names = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
    return {name: lines[name] for name in names if name in lines}


def _properties(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def meta_properties(cluster_id: str) -> str:
    """The file that a broker of Apache's wants in the observer's directory."""
    return (
        f"version=1\ncluster.id={cluster_id}\nnode.id={NODE_ID}\n"
        f"directory.id={to_base64(DIRECTORY_ID)}\n"
    )


def batches_of(directory: Path) -> dict[int, bytes]:
    """Whole batches of all segments, by base offset."""
    found = {}
    for path in sorted(directory.glob("*.log")):
        content = path.read_bytes()
        for position, header in iterate_headers(content):
            found[header.base_offset] = content[position : position + header.size_in_bytes]
    return found
