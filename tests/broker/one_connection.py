"""A dispatcher with one client, without a socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from broker.handlers import all_handlers
from broker.network.client import Client
from broker.requests.dispatch import Dispatcher
from broker.runtime.clock import SystemClock
from config.broker import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.messages.groups import ListGroupsRequest
from tests.support.broker_parts.services import Adapters, parts_in_memory
from tests.support.wire import request_header

if TYPE_CHECKING:
    from collections.abc import Coroutine

CORRELATION_ID = 77
assert all_handlers.MODULES, "they register themselves when they are imported"


class ClosableConnection:
    """Notes why it was closed."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def close(self, reason: str = "") -> None:
        self.reasons.append(reason)


class OneConnection:
    """A dispatcher with one client."""

    def __init__(self, *, is_in_cluster: bool = False) -> None:
        services = parts_in_memory(BrokerConfig(), Adapters(SystemClock())).services
        services.is_in_cluster = is_in_cluster
        services.spawn = self._spawn
        self.metadata = services.metadata
        self.connection = ClosableConnection()
        self._dispatcher = Dispatcher(services)
        self._peer = Client("PLAINTEXT", {})
        self._tasks: list[asyncio.Task[None]] = []

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        self._tasks.append(asyncio.get_running_loop().create_task(work, name=name))
        return self._tasks[-1]

    def send(self, key: int, version: int, body: bytes = b"") -> Any:
        """The answer to one request with header version 1."""
        frame = request_header(key, version, CORRELATION_ID) + body
        return self.send_frame(frame)

    def send_frame(self, frame: bytes) -> Any:
        view = memoryview(bytearray(frame))
        return self._dispatcher.dispatch(view, self._peer, cast("Any", self.connection))


def joined(parts: Any) -> bytes:
    """The answer behind its size, which must be right."""
    data = b"".join(bytes(part) for part in parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert int.from_bytes(data[4:8], "big") == CORRELATION_ID
    return data[8:]


def ask_for_groups(client: OneConnection) -> Any:
    return client.send(ApiKey.LIST_GROUPS, 2, ListGroupsRequest().encode(2))
