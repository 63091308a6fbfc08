"""Client metrics (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, boolean, int8, int16, int32, string, uuid
from protocol.schema import Request, Response

if TYPE_CHECKING:
    from uuid import UUID


class GetTelemetrySubscriptionsRequest(
    Request, key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    """A client asks which metrics it should push."""

    client_instance_id: UUID = uuid()
    """Zero for a client that has none yet."""


class GetTelemetrySubscriptionsResponse(
    Response, request=GetTelemetrySubscriptionsRequest, versions="0", flexible="0+"
):
    """Answer to GetTelemetrySubscriptionsRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    client_instance_id: UUID = uuid()
    """The id that the client shall keep."""
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    """True to push deltas instead of totals."""
    requested_metrics: list[str] = array(string)
    """Prefixes of names; an empty text asks for all, an empty list for none."""


class PushTelemetryRequest(Request, key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+"):
    """A client pushes its metrics."""

    client_instance_id: UUID = uuid()
    subscription_id: int = int32()
    """UNKNOWN_SUBSCRIPTION_ID if the subscriptions have changed since."""
    terminating: bool = boolean()
    """True for the client's last push."""
    compression_type: int = int8()
    metrics: bytes = blob()
    """OpenTelemetry MetricsData (OTLP), compressed."""


class PushTelemetryResponse(Response, request=PushTelemetryRequest, versions="0", flexible="0+"):
    """Answer to PushTelemetryRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
