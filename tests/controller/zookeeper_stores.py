"""Sessions on one ZooKeeper server, each test below a path of its own."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from controller.zookeeper.address import parse_address
from controller.zookeeper.store import RequestLimits, ZooKeeperStore
from tests.support.brokers.zookeeper import SHORTEST_SESSION_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.brokers.zookeeper import ZooKeeperServer

CONNECTION_TIMEOUT_MS = 15_000
MAX_REQUEST_BYTES = 1_000_000
WAIT_SECONDS = 120.0
POLL_SECONDS = 0.005


async def connect(
    server: ZooKeeperServer, root: str, session_timeout_ms: int = 4 * SHORTEST_SESSION_MS
) -> ZooKeeperStore:
    """Open a session on the part of the tree below `root`."""
    return await ZooKeeperStore.connect(
        parse_address(server.address + root),
        session_timeout_ms=session_timeout_ms,
        connection_timeout_ms=CONNECTION_TIMEOUT_MS,
        limits=RequestLimits(in_flight=10, request_bytes=MAX_REQUEST_BYTES),
    )


async def eventually(condition: Callable[[], bool]) -> None:
    """Return once `condition` holds; what happens in another process needs its time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(POLL_SECONDS)  # noqa: TID251
