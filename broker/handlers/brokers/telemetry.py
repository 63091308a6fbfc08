"""GetTelemetrySubscriptions and PushTelemetry: metrics of clients (KIP-714).

Version 0. Served, and listed in ApiVersions, only with a metrics endpoint (`metrics.port`), as in
Apache Kafka with a plug-in for them; not with ZooKeeper. All clients may ask and push, as in Apache
Kafka.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.background_answer import answer_later
from broker.runtime.deferred import HangUp
from broker.telemetry import otlp
from broker.telemetry.subscription import (
    CLIENT_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    CLIENT_SOURCE_ADDRESS,
    CLIENT_SOURCE_PORT,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from broker.telemetry.telemetry import Telemetry


@handles(GetTelemetrySubscriptionsRequest, versions="0", for_one=True)
def get_telemetry_subscriptions(
    context: Context, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Say which metrics the client should push."""
    telemetry = _telemetry(context)
    try:
        return telemetry.get(request, context.client, _attributes(context), context.now_ms)
    except ApiError as error:
        return GetTelemetrySubscriptionsResponse(
            error_code=error.code,
            client_instance_id=ZERO_UUID,
            subscription_id=0,
            accepted_compression_types=[],
            push_interval_ms=0,
            telemetry_max_bytes=0,
            delta_temporality=False,
            requested_metrics=[],
        )


@handles(PushTelemetryRequest, versions="0", for_one=True)
def push_telemetry(
    context: Context, request: PushTelemetryRequest
) -> PushTelemetryResponse | Deferred[PushTelemetryResponse]:
    """Take a client's push; it is read on a thread."""
    telemetry, now_ms = _telemetry(context), context.now_ms
    try:
        instance = telemetry.check_push(request, context.client, _attributes(context), now_ms)
    except ApiError as error:
        return _refused(error)
    if not request.metrics:
        return PushTelemetryResponse(error_code=ErrorCode.NONE)
    codec, data = request.compression_type, bytes(request.metrics)
    instance_id = request.client_instance_id

    async def work() -> PushTelemetryResponse:
        try:
            async with telemetry.reading:
                limits = telemetry.most_bytes, telemetry.most_points
                pushed = await asyncio.to_thread(otlp.read, codec, data, *limits)
        except ApiError:
            telemetry.could_not_read(instance)
            raise
        telemetry.take(instance_id, instance, pushed, now_ms)
        return PushTelemetryResponse(error_code=ErrorCode.NONE)

    return answer_later(context, work(), _refused, "telemetry push")


def _refused(error: ApiError) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error.code)


def _telemetry(context: Context) -> Telemetry:
    telemetry = context.broker.telemetry
    if telemetry is None:
        raise HangUp("client telemetry is off: there is no metrics.port")
    return telemetry


def _attributes(context: Context) -> dict[str, str]:
    """Attributes by which subscriptions match the client."""
    attributes = {CLIENT_SOURCE_ADDRESS: context.client_host[1:]}
    if context.client_id is not None:
        attributes[CLIENT_ID] = context.client_id
    client = context.client
    if client is not None:
        attributes[CLIENT_SOURCE_PORT] = client.address.rpartition(":")[2]
        if client.software is not None:
            attributes[CLIENT_SOFTWARE_NAME], attributes[CLIENT_SOFTWARE_VERSION] = client.software
    return attributes
