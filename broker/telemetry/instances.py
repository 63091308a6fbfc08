"""The clients that push metrics, and whether it is time for a request of theirs.

    GetTelemetrySubscriptions    an interval after the last request, or after an error that asks
                                 for new subscriptions
    PushTelemetry                an interval after the last push, or once after a subscription was
                                 got; at any time if it is the last one

Source: `ClientMetricsManager` and `ClientMetricsInstance` in Apache Kafka.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google_crc32c import value as crc32c

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from broker.network.client import Client
    from broker.telemetry.subscriptions import Subscriptions

LEAST_IDLE_MS: Final = 60_000
INTERVALS_KEPT: Final = 3
"""Number of missed pushes after which a client is forgotten."""
ASKS_AGAIN: Final = {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}


@dataclass(slots=True)
class Instance:
    """One client, and the metrics requested of it."""

    attributes: Mapping[str, str]
    metrics: list[str]
    interval_ms: int
    subscription_id: int
    version: int
    """Version of the subscriptions that it was built from."""
    seen_ms: int = 0
    got_ms: int = 0
    pushed_ms: int = 0
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    def check_get(self, now_ms: int) -> None:
        """Raise ApiError THROTTLING_QUOTA_EXCEEDED if the client asks too soon."""
        if now_ms - max(self.got_ms, self.pushed_ms) >= self.interval_ms:
            self.got_ms = now_ms
        elif self.last_error not in ASKS_AGAIN:
            raise _too_soon()

    def check_push(self, now_ms: int, subscription_id: int, *, is_last: bool) -> None:
        """Raise ApiError unless the client may push that now; notes that it has."""
        was_terminating, self.is_terminating = self.is_terminating, is_last
        if was_terminating:
            reason = "The client has said in an earlier push that it was the last."
            raise ApiError(ErrorCode.INVALID_REQUEST, reason)
        if self.got_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.interval_ms:
            self.pushed_ms = now_ms
        elif not is_last:
            raise _too_soon()
        if subscription_id != self.subscription_id:
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)

    @property
    def idle_limit_ms(self) -> int:
        """Time without a request for which it is remembered."""
        return max(LEAST_IDLE_MS, INTERVALS_KEPT * self.interval_ms)


class Instances:
    """Client instances by id, `most` at most: the least recently active one is evicted."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        most: int,
        on_gone: Callable[[UUID], None],
    ) -> None:
        """`on_gone` is called for forgotten ones, but not for clients that disconnect."""
        self._subscriptions = subscriptions
        self._most = most
        self._on_gone = on_gone
        self._by_id: OrderedDict[UUID, Instance] = OrderedDict()
        self._of_client: dict[Client, UUID] = {}
        """The last one of each connection, with which it ends."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, instance_id: object) -> bool:
        return instance_id in self._by_id

    def find(self, instance_id: UUID, attributes: Mapping[str, str], now_ms: int) -> Instance:
        """The instance of an id, created if it is unknown or its subscriptions have changed."""
        found = self._by_id.get(instance_id)
        if found is None or found.version != self._subscriptions.version:
            found = self._made(instance_id, attributes if found is None else found.attributes)
            self._by_id[instance_id] = found
        found.seen_ms = now_ms
        self._by_id.move_to_end(instance_id)
        while len(self._by_id) > self._most:
            self._forget(next(iter(self._by_id)))
        return found

    def end_with(self, client: Client, instance_id: UUID) -> None:
        """Have the instance end when the client hangs up."""
        if client not in self._of_client:
            client.on_disconnect(lambda: self._hung_up(client))
        self._of_client[client] = instance_id

    def expire(self, now_ms: int) -> None:
        """Forget those that were silent for too long."""
        silent = [
            instance_id
            for instance_id, one in self._by_id.items()
            if now_ms - one.seen_ms > one.idle_limit_ms
        ]
        for instance_id in silent:
            self._forget(instance_id)

    def _made(self, instance_id: UUID, attributes: Mapping[str, str]) -> Instance:
        version = self._subscriptions.version
        metrics, interval_ms = self._subscriptions.of_client(attributes)
        named = ",".join(metrics).encode() + b"%d" % interval_ms + instance_id.bytes
        subscription_id = int.from_bytes(crc32c(named).to_bytes(4, "big"), "big", signed=True)
        return Instance(attributes, metrics, interval_ms, subscription_id, version)

    def _hung_up(self, client: Client) -> None:
        instance_id = self._of_client.pop(client, None)
        if instance_id is not None:
            self._by_id.pop(instance_id, None)

    def _forget(self, instance_id: UUID) -> None:
        if self._by_id.pop(instance_id, None) is not None:
            self._on_gone(instance_id)


def _too_soon() -> ApiError:
    reason = "The request arrived before the next push interval time."
    return ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, reason)
