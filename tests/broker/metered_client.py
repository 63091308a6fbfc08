"""A client of a broker without sockets whose requests are metered, as over a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from broker.network.client import Client
from broker.requests.dispatch import Dispatcher
from broker.runtime.deferred import Deferred
from controller.security.config_entities import ConfigEntity
from protocol.headers import request_front, response_header_bytes
from tests.broker.handlers.one_broker import OneBroker, as_bytes
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from broker.quotas.quota_keys import QuotaKey
    from protocol.schema import Request

SIZE_BYTES = 4


class RestingConnection:
    """Connection that records its throttle times."""

    def __init__(self) -> None:
        self.rests_ms: list[int] = []
        self.reasons: list[str] = []

    def rest(self, milliseconds: int) -> None:
        self.rests_ms.append(milliseconds)

    def close(self, reason: str = "") -> None:
        self.reasons.append(reason)


class MeteredClient:
    """A client id on one connection."""

    def __init__(self, broker: OneBroker, client_id: str = "loader", user: str = "alice") -> None:
        self._broker = broker
        self._client_id = client_id
        self._dispatcher = Dispatcher(broker.services)
        self._peer = Client("PLAINTEXT", {})
        self._peer.principal = f"User:{user}"
        self.connection = RestingConnection()

    async def limit(self, key: QuotaKey, limit: float | None, **entity: Any) -> None:
        """Set a quota for the user, or for another entity."""
        values = {} if limit is None else {str(key): str(limit)}

        def change(before: Any) -> Any:
            return {name: text for name, text in before.items() if name != key} | values

        of = ConfigEntity(**entity) if entity else ConfigEntity(user="alice")
        await self._broker.services.user_configs.alter(of, change)

    async def ask(self, request: Request, version: int) -> Any:
        """The answer, decoded; None if there is none."""
        cls = type(request)
        body = request.encode(version)
        front = request_front(1, cls.API_KEY, version, self._client_id.encode(), len(body))
        frame = memoryview(bytearray(front + body))[SIZE_BYTES:]
        answer = self._dispatcher.dispatch(frame, self._peer, cast("Any", self.connection))
        parts = await arrival(answer) if isinstance(answer, Deferred) else answer
        if parts is None:
            return None
        encoded = b"".join(as_bytes(part) for part in parts)
        start = SIZE_BYTES + response_header_bytes(cls.API_KEY, version)
        return cls.RESPONSE.decode(version, encoded, start)

    def take_rests(self) -> list[int]:
        """Return the throttle times of the connection since the last call."""
        taken, self.connection.rests_ms = self.connection.rests_ms, []
        return taken
