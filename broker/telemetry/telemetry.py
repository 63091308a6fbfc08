"""GetTelemetrySubscriptions and PushTelemetry, decided (KIP-714).

Instances of clients and numbers are bounded by `client.telemetry.max.instances` and
`client.telemetry.max.series`, a push by `telemetry.max.bytes`, compressed and not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from uuid import UUID

from broker.telemetry.instances import Instances
from broker.telemetry.series import Series
from broker.telemetry.subscription import (
    CLIENT_ID,
    CLIENT_INSTANCE_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.records.compression import Codec
from protocol.uuids import ZERO_UUID, to_base64

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.network.client import Client
    from broker.telemetry.instances import Instance
    from broker.telemetry.otlp import Pushed
    from broker.telemetry.subscriptions import Subscriptions
    from config.broker import BrokerConfig
    from protocol.messages.telemetry import PushTelemetryRequest

RESERVED: Final = {ZERO_UUID, UUID(int=1)}
"""Ids that no client has."""
CODECS: Final = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]
"""Codecs offered to clients, best first."""
SHOWN: Final = (CLIENT_INSTANCE_ID, CLIENT_ID, CLIENT_SOFTWARE_NAME, CLIENT_SOFTWARE_VERSION)
"""Attributes that are labels. Address and port are not: they would make series of each
connection."""
LONGEST_LABEL: Final = 200
"""Characters of a client's attributes, 32 KB each, that are kept and matched. Fixed: a client's
name is for human readers.
"""
EXPIRY_EVERY_MS: Final = 10_000


class Telemetry:
    """Of one broker; on the event loop."""

    def __init__(
        self, config: BrokerConfig, subscriptions: Subscriptions, new_id: Callable[[], UUID]
    ) -> None:
        """`new_id` draws an id for a client that has none."""
        self.subscriptions = subscriptions
        self.most_bytes = config.telemetry_max_bytes
        self.most_points = config.client_telemetry_max_points
        self.series = Series(config.client_telemetry_max_series)
        self.instances = Instances(
            subscriptions, config.client_telemetry_max_instances, self.series.forget
        )
        self.reading = asyncio.Lock()
        """Held while a push is decoded: one at a time, to bound memory."""
        self._new_id = new_id
        self._expired_ms = 0
        self.throttled = 0
        """Requests so far that came too soon."""
        self.unknown_subscriptions = 0
        self.unreadable = 0
        """Pushes so far."""

    def get(
        self,
        request: GetTelemetrySubscriptionsRequest,
        client: Client | None,
        attributes: Mapping[str, str],
        now_ms: int,
    ) -> GetTelemetrySubscriptionsResponse:
        """Subscription of a client. Raises ApiError."""
        instance_id = request.client_instance_id
        while instance_id == ZERO_UUID or instance_id in RESERVED:
            instance_id = self._new_id()
        instance = self._instance(instance_id, client, attributes, now_ms)
        try:
            instance.check_get(now_ms)
        except ApiError:
            self.throttled += 1
            raise
        instance.last_error = ErrorCode.NONE
        return GetTelemetrySubscriptionsResponse(
            error_code=ErrorCode.NONE,
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(CODECS),
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=self.most_bytes,
            delta_temporality=True,
            requested_metrics=instance.metrics,
        )

    def check_push(
        self,
        request: PushTelemetryRequest,
        client: Client | None,
        attributes: Mapping[str, str],
        now_ms: int,
    ) -> Instance:
        """The pushing client instance. Raises ApiError if it may not push, or not this."""
        if request.client_instance_id in RESERVED:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid client instance id.")
        instance = self._instance(request.client_instance_id, client, attributes, now_ms)
        try:
            instance.check_push(now_ms, request.subscription_id, is_last=request.terminating)
            if request.compression_type not in set(Codec):
                raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            if len(request.metrics) > self.most_bytes:
                reason = f"The largest push that is accepted has {self.most_bytes} bytes."
                raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE, reason)
        except ApiError as error:
            instance.last_error = error.code
            self.throttled += error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            self.unknown_subscriptions += error.code is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
            raise
        return instance

    def take(self, instance_id: UUID, instance: Instance, pushed: Pushed, now_ms: int) -> None:
        """Keep a push."""
        told = instance.attributes
        labels = {name: told[name] for name in SHOWN if name in told}
        self.series.left_out += pushed.left_out
        keep_until_ms = now_ms + instance.idle_limit_ms
        self.series.take(instance_id, labels, pushed.points, keep_until_ms)
        instance.last_error = ErrorCode.NONE

    def could_not_read(self, instance: Instance) -> None:
        """Note a push of which nothing can be made."""
        self.unreadable += 1
        instance.last_error = ErrorCode.INVALID_RECORD

    def _instance(
        self,
        instance_id: UUID,
        client: Client | None,
        attributes: Mapping[str, str],
        now_ms: int,
    ) -> Instance:
        if now_ms - self._expired_ms >= EXPIRY_EVERY_MS:
            self._expired_ms = now_ms
            self.instances.expire(now_ms)
            self.series.expire(now_ms)
        own = {name: text[:LONGEST_LABEL] for name, text in attributes.items()}
        own[CLIENT_INSTANCE_ID] = to_base64(instance_id)
        instance = self.instances.find(instance_id, own, now_ms)
        if client is not None:
            self.instances.end_with(client, instance_id)
        return instance
