"""Services of the machine that a broker runs on; the simulation has a machine of its own.

The network comes with the event loop; here are its listening sockets.
"""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from broker.runtime.addresses.host_names import look_up_advertised, system_host
from broker.runtime.addresses.listening_socket import listen_on
from broker.runtime.clock import Clock, SystemClock
from broker.runtime.open_files import Limit, raise_limit
from broker.runtime.timers import Timers
from controller.metadata_store.store import MetadataStore, StoreError
from storage.filesystem import FileSystem, LocalFileSystem

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from config.broker import BrokerConfig
    from controller.zookeeper.security import ZooKeeperSecurity


class ConnectError(Exception):
    """ZooKeeper cannot be used; the text says why, in one line."""


class Platform(Protocol):
    """Clock, timers, disk, threads, names of hosts, and the way to ZooKeeper."""

    @property
    def clock(self) -> Clock:
        """The clocks."""

    def stopwatch(self) -> float:
        """Seconds since some moment, which pass while the event loop works."""

    @property
    def filesystem(self) -> FileSystem:
        """The disks."""

    def open_files_limit(self) -> Limit | None:
        """Raise the limit of open files and sockets to its maximum; None stands for no limit."""

    def threads(self, count: int, name: str) -> Executor:
        """A pool of threads for work that must not block the event loop."""

    def timers(self, loop: asyncio.AbstractEventLoop) -> Timers:
        """The broker's timers, on its loop."""

    def look_up_advertised(self, hosts: Mapping[str, str]) -> None:
        """Warn of each advertised host, by listener, that has no address here; returns at once."""

    async def listen_on(self, host: str, port: int) -> Mapping[str, Any]:
        """Arguments of the loop's `create_server` to listen at an address. Raises OSError."""

    async def connect(self, config: BrokerConfig, security: ZooKeeperSecurity) -> MetadataStore:
        """The metadata store at `zookeeper.connect`. Raises ConnectError."""


class LocalPlatform:
    """This machine."""

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self.filesystem = LocalFileSystem()

    def stopwatch(self) -> float:
        """The machine's most precise clock."""
        return time.perf_counter()

    def open_files_limit(self) -> Limit | None:
        """The limit of this process, which the system lets it raise."""
        return raise_limit()

    def threads(self, count: int, name: str) -> Executor:
        """Threads of the operating system."""
        return ThreadPoolExecutor(count, thread_name_prefix=name)

    def timers(self, loop: asyncio.AbstractEventLoop) -> Timers:
        """Timers of the loop."""
        return Timers(loop)

    def look_up_advertised(self, hosts: Mapping[str, str]) -> None:
        """Ask whom the system asks, on a thread."""
        look_up_advertised(hosts)

    async def listen_on(self, host: str, port: int) -> Mapping[str, Any]:
        """A socket that is bound."""
        return await listen_on(host, port)

    async def connect(self, config: BrokerConfig, security: ZooKeeperSecurity) -> MetadataStore:
        """Connect through kazoo, which is imported only now."""
        from controller.zookeeper.address import AddressError, parse_address  # noqa: PLC0415
        from controller.zookeeper.store import RequestLimits, ZooKeeperStore  # noqa: PLC0415

        session_ms = config.zookeeper_session_timeout_ms
        try:
            address = parse_address(config.zookeeper_connect or "")
            servers = tuple((system_host(host), port) for host, port in address.servers)
            return await ZooKeeperStore.connect(
                dataclasses.replace(address, servers=servers),
                session_timeout_ms=session_ms,
                connection_timeout_ms=config.zookeeper_connection_timeout_ms or session_ms,
                limits=RequestLimits(
                    config.zookeeper_max_in_flight_requests, config.zookeeper_request_max_bytes
                ),
                security=security,
            )
        except AddressError as error:
            raise ConnectError(str(error)) from None
        except OSError as error:
            text = f"zookeeper.connect {config.zookeeper_connect!r}: {error}"
            raise ConnectError(text) from None
        except StoreError as error:
            raise ConnectError(error.reason) from None
