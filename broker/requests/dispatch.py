"""From a frame to a response: header, version check, decoding, handler, errors, encoding.

The common part of all requests. A request costs no task: the handler is called, and returns a
response, a `Deferred` of one, or None for no answer.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker.requests.answers import Answering, answer_when_read, refuse_frame
from broker.requests.api_table import ROUTES, Route
from broker.requests.authorization import would_be_allowed_on_cluster
from broker.requests.context import Context
from broker.requests.long_requests import (
    LONG_BYTES,
    ElementBudget,
    LongRequest,
)
from broker.requests.request_meter import RequestMeter
from broker.requests.startup_gate import holding, is_held
from broker.requests.versioned_route import VersionedRoute
from broker.runtime.deferred import Deferred
from protocol.acl_types import AclOperation
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, parse_request_header
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.schema import UNDECODABLE

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.requests.services import BrokerServices
    from protocol.schema import Part

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Dispatcher:
    """Serves the frames of all connections of a broker."""

    def __init__(self, broker: BrokerServices) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._quotas = broker.quotas
        self._elements: ElementBudget | None = None
        self._served: dict[tuple[int, int], VersionedRoute] = {}
        """The routes used so far, by API key and version."""

    @property
    def elements(self) -> ElementBudget:
        """The bound on long requests; made for the first of them, on the running loop."""
        if self._elements is None:
            self._elements = ElementBudget(self._broker.config.queued_max_request_elements)
        return self._elements

    def dispatch(
        self, frame: memoryview, peer: Client, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve one frame, without its size; returns the answer, now or to come.

        None means that there is none to send: by acks=0, or because the connection was closed, as
        it is if the request cannot be read or its error not answered. What else is raised while
        the header and the body are read is a defect of ours; the connection logs it and aborts.
        """
        now_ms = self._clock.now_ms()
        served = None
        try:
            header, position = parse_request_header(frame)
            served = self._served.get((header.api_key, header.api_version))
            if served is None:
                route = ROUTES.get(header.api_key)
                if route is None or header.api_version not in route.versions:
                    return self._refuse(header, route, connection)
                served = self._serve(route, header.api_version)
            context = Context(
                self._broker,
                header.api_version,
                header.client_id,
                peer.listener,
                peer.host,
                peer.principal,
                now_ms,
                api_key=header.api_key,
                client=peer,
            )
            if len(frame) > LONG_BYTES or self._quotas.is_enabled:
                answering = Answering(served, header.correlation_id, context, connection)
                return self._serve_with_care(answering, frame, position)
            # Bytes left over are ignored, as in Apache Kafka: librdkafka 2.16 sends a null array of
            # topics in Metadata v13 as four bytes where one belongs.
            request, _ = served.decode(frame, position, len(frame))
        except UNDECODABLE as error:
            refuse_frame(served, error, len(frame), connection)
            return None
        try:  # as `Answering.handle`, without making one: nearly all requests end here
            response = served.handler(context, request)
            if not isinstance(response, Deferred):
                number = header.correlation_id
                return None if response is None else served.respond(number, response)
        except Exception as error:  # noqa: BLE001 - every one is told, most are answered
            return Answering(served, header.correlation_id, context, connection).refuse(error)
        return Answering(served, header.correlation_id, context, connection).later(response)

    def _serve_with_care(
        self, answering: Answering, frame: memoryview, position: int
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve a frame that is long, or any while quotas are set. Raises UNDECODABLE."""
        size = len(frame)
        if self._quotas.is_enabled:
            context = answering.context
            meter = RequestMeter(self._quotas, answering.served, context, answering.connection)
            meter.note_size(size)
            context.meter = meter
        if size > LONG_BYTES:
            return self._serve_long(answering, frame, position)
        request, _ = answering.served.decode(frame, position, size)
        return answering.handle(request)

    def _serve_long(
        self, short: Answering, frame: memoryview, position: int
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve a long frame, now or, if it takes a while to read, later. Raises UNDECODABLE."""
        steps = short.served.decode_in_steps(frame, position, len(frame))
        # The controller's requests name each partition of the cluster: no bound applies to them. It
        # does to those of a client that only pretends to be a broker.
        is_order = (
            short.served.route.is_for_clusters
            and self._broker.is_in_cluster
            and would_be_allowed_on_cluster(short.context, AclOperation.CLUSTER_ACTION)
        )
        limit = None if is_order else self._broker.config.max_request_elements
        long = LongRequest(steps, limit)
        if (whole := long.read_at_once()) is not None:
            return short.handle(whole)
        size = len(frame)
        if is_order:
            read = partial(long.read_on, self._broker.slices())
        else:
            most = min(size, limit or size)  # an element has a byte at least
            read = partial(self.elements.read, long, most, short.context)
        return answer_when_read(short, read, size)

    def _serve(self, route: Route, version: int) -> VersionedRoute:
        served = self._make(route, version)
        if self._broker.interpose is not None:
            served.handler = self._broker.interpose(route, served.handler)
        if self._broker.metadata.is_awaited and is_held(route):
            served.handler = holding(served.handler)
        else:
            self._served[int(route.request.API_KEY), version] = served
        return served

    def _make(self, route: Route, version: int) -> VersionedRoute:
        return VersionedRoute(route, version)

    def _refuse(
        self, header: RequestHeader, route: Route | None, connection: Connection
    ) -> list[Part] | None:
        if route is None:
            connection.close(f"request {_name(header)} is not served (see GAPS.md)")
            return None
        return self._refuse_version(header, route, connection)

    def _refuse_version(
        self, header: RequestHeader, route: Route, connection: Connection
    ) -> list[Part] | None:
        """Answer ApiVersions with the versions to use (KIP-511); hang up on all others."""
        if header.api_key != ApiKey.API_VERSIONS:
            connection.close(
                f"{_name(header)} has versions {route.versions} here, not {header.api_version}"
            )
            return None
        answer = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersionsResponse.ApiKey(
                    api_key=ApiKey.API_VERSIONS,
                    min_version=route.versions.first,
                    max_version=route.versions.last,
                )
            ],
        )
        return VersionedRoute(route, 0).respond(header.correlation_id, answer)


def _name(header: RequestHeader) -> str:
    return ApiKey(header.api_key).name
