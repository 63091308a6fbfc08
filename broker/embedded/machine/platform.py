"""`broker.runtime.platform.Platform` of an embedded broker."""

from __future__ import annotations

import resource
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from broker.embedded.machine.log_lines import OWNER
from broker.runtime.addresses.listening_socket import listen_on
from broker.runtime.open_files import WITHOUT_LIMIT, Limit
from broker.runtime.platform import LocalPlatform

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from broker.embedded.machine.disk import EmbeddedDisk
    from broker.embedded.machine.log_lines import LogLines
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore
    from controller.zookeeper.security import ZooKeeperSecurity


class EmbeddedPlatform:
    """This machine, without changing anything of the process."""

    def __init__(
        self,
        clock: Clock,
        disk: EmbeddedDisk,
        lines: LogLines,
        timers: Timers,
        store: Callable[[], MetadataStore] | None = None,
    ) -> None:
        """`store` opens that of a cluster, in the place of ZooKeeper's."""
        self.clock = clock
        self._timers = timers
        self.filesystem = disk
        self._lines = lines
        self._store = store

    def stopwatch(self) -> float:
        """The machine's most precise clock."""
        return time.perf_counter()

    def open_files_limit(self) -> Limit:
        """The limit of this process, which is left as it is."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return Limit(soft, WITHOUT_LIMIT if soft == resource.RLIM_INFINITY else soft)

    def threads(self, count: int, name: str) -> Executor:
        """Threads of the operating system, whose log lines are this broker's."""
        return ThreadPoolExecutor(
            count, f"embedded {name}", initializer=OWNER.set, initargs=(self._lines,)
        )

    def timers(self, loop: asyncio.AbstractEventLoop) -> Timers:  # noqa: ARG002 - theirs
        """Timers that follow the advanced time."""
        return self._timers

    def look_up_advertised(self, hosts: Mapping[str, str]) -> None:
        """All are addresses."""

    async def listen_on(self, host: str, port: int) -> Mapping[str, Any]:
        """A socket that is bound."""
        return await listen_on(host, port)

    async def connect(self, config: BrokerConfig, security: ZooKeeperSecurity) -> MetadataStore:
        """The metadata store of the cluster, or ZooKeeper's. Raises ConnectError."""
        if self._store is not None:
            return self._store()
        return await LocalPlatform().connect(config, security)
