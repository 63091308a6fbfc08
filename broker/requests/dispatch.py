"""From a frame to a response: header, version check, decoding, handler, errors, encoding.

The common part of all requests. A request costs no task: the handler is called, and returns a
response, a `Deferred` of one, or None for no answer.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from broker.requests.api_table import ROUTES, Route
from broker.requests.authorization import would_be_allowed_on_cluster
from broker.requests.context import Context
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.long_requests import (
    LONG_BYTES,
    ElementBudget,
    LongRequest,
    TooManyElementsError,
)
from broker.requests.request_meter import RequestMeter
from broker.requests.startup_gate import holding, is_held
from broker.requests.versioned_route import VersionedRoute
from broker.runtime.deferred import AbandonedError, Deferred, HangUp, in_background
from protocol.acl_types import AclOperation
from protocol.api_keys import ApiKey
from protocol.errors import ApiError, ErrorCode, shortened
from protocol.headers import RequestHeader, parse_request_header
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.schema import UNDECODABLE

if TYPE_CHECKING:
    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.requests.services import BrokerServices
    from protocol.schema import Part, Request, Response

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Dispatcher:
    """Serves the frames of all connections of a broker."""

    def __init__(self, broker: BrokerServices) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._quotas = broker.quotas
        self._served: dict[tuple[int, int], VersionedRoute] = {}
        """The routes used so far, by API key and version."""

    @cached_property
    def elements(self) -> ElementBudget:
        """The bound on long requests; made for the first of them, on the running loop."""
        return ElementBudget(self._broker.config.queued_max_request_elements)

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
                answering = _Answering(served, header.correlation_id, context, connection)
                return self._serve_with_care(answering, frame, position)
            # Bytes left over are ignored, as in Apache Kafka: librdkafka 2.16 sends a null array of
            # topics in Metadata v13 as four bytes where one belongs.
            request, _ = served.decode(frame, position, len(frame))
        except UNDECODABLE as error:
            _refuse_frame(served, error, len(frame), connection)
            return None
        try:  # as `_Answering.handle`, without making one: nearly all requests end here
            response = served.handler(context, request)
            if not isinstance(response, Deferred):
                number = header.correlation_id
                return None if response is None else served.respond(number, response)
        except Exception as error:  # noqa: BLE001 - every one is told, most are answered
            return _Answering(served, header.correlation_id, context, connection).refuse(error)
        return _Answering(served, header.correlation_id, context, connection).later(response)

    def _serve_with_care(
        self, answering: _Answering, frame: memoryview, position: int
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve a frame that is long, or any while quotas are set. Raises UNDECODABLE."""
        size = len(frame)
        if self._quotas.is_enabled:
            _, _, context, connection = answering
            context.meter = RequestMeter(self._quotas, answering.served, context, connection)
            context.meter.note_size(size)
        if size > LONG_BYTES:
            return self._serve_long(answering, frame, position)
        request, _ = answering.served.decode(frame, position, size)
        return answering.handle(request)

    def _serve_long(
        self, short: _Answering, frame: memoryview, position: int
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
        answering = _AnsweringInSlices(*short)
        meter = short.context.meter
        if meter is not None:
            meter.pause()
        size = len(frame)
        most = min(size, limit or size)  # an element has a byte at least

        async def read_on() -> list[Part] | Deferred[list[Part] | None] | None:
            try:
                if is_order:
                    request = await long.read_on(self._broker.slices())
                else:
                    request = await self.elements.read(long, most, answering.context)
            except UNDECODABLE as error:
                _refuse_frame(answering.served, error, size, answering.connection)
                return None
            if meter is not None:
                meter.resume()
            answering.context.now_ms = self._clock.now_ms()
            answering.context.is_long = True
            return answering.handle(request)

        return in_background(self._broker.spawn, read_on(), "long request").map(_itself)

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


def _refuse_frame(
    served: VersionedRoute | None, error: Exception, size: int, connection: Connection
) -> None:
    """Close a connection that sent an undecodable frame."""
    # In words: an error that its own frame holds is a garbage cycle with the connection.
    reason = str(error if served is None else served.route.request.refusal(served.version, error))
    kind = "request" if isinstance(error, TooManyElementsError) else "malformed request"
    connection.close(f"{kind} of {size} bytes: {reason}")


def _itself(answer: T) -> T:
    return answer


class _Answering(NamedTuple):
    """Makes the bytes of one answer, now or later: of a response, or of an error."""

    served: VersionedRoute
    correlation_id: int
    context: Context
    connection: Connection

    def handle(self, request: Request) -> list[Part] | Deferred[list[Part] | None] | None:
        """The bytes of the answer, now or later; None for no answer."""
        try:
            response = self.served.handler(self.context, request)
        except Exception as error:  # noqa: BLE001 - every one is told, most are answered
            return self.refuse(error)
        if isinstance(response, Deferred):
            return self.later(response)
        response = self._settled(response)
        return None if response is None else self.respond(response)

    def _settled(self, response: T) -> T:
        """The same answer, or with the time for which its client has to rest."""
        meter = self.context.meter
        return response if meter is None else cast("T", meter.settle(response))

    def respond(self, response: Response) -> list[Part] | Deferred[list[Part] | None] | None:
        """The bytes of a response; those of an error if it cannot be written."""
        return self.written(response)

    def written(self, response: Response) -> list[Part] | None:
        """The bytes of a response, now."""
        try:
            return self.served.respond(self.correlation_id, response)
        except Exception as error:  # noqa: BLE001 - logged in `refuse`
            return self.refuse(error)

    def refuse(self, error: Exception) -> list[Part] | None:
        """The bytes of an error; None, and the connection is closed, if it cannot be answered."""
        served = self.served
        answer = _answer_to(error, served.route, self.context, self.connection)
        if answer is None:
            return None
        try:
            return served.respond(self.correlation_id, self._settled(answer))
        except Exception:
            name = served.route.request.__name__
            logger.exception("error response to %s cannot be written", name)
            self.connection.close(f"{name}: {error}")
            return None

    def later(self, response: Deferred[Any]) -> Deferred[list[Part] | None]:
        """The bytes of a response that is to come; of None, no answer. It never fails."""
        encoded: Deferred[list[Part] | None] = Deferred(
            is_ordered_only=response.is_ordered_only, on_abandon=response.abandon
        )

        meter = self.context.meter
        if meter is not None:
            meter.pause()

        def finish(value: Response | None) -> None:
            if meter is not None:
                meter.resume()
                value = self._settled(value)
            answer = None if value is None else self.respond(value)
            if isinstance(answer, Deferred):
                encoded.follow(answer)
            else:
                encoded.complete(answer)

        def fail(error: Exception) -> None:
            if meter is not None:
                meter.resume()
            encoded.complete(self.refuse(error))

        response.then(finish, fail)
        return encoded


class _AnsweringInSlices(_Answering):
    """Others are served while an answer is written: that to a long request may be as long."""

    __slots__ = ()

    def respond(self, response: Response) -> Deferred[list[Part] | None]:
        """The bytes of a response; those of an error if it cannot be written."""
        self.served.note(response)
        writing = encoded_in_slices(self.context, response)
        ready = in_background(self.context.broker.spawn, writing, "long answer")
        answer: Deferred[list[Part] | None] = Deferred(on_abandon=ready.abandon)

        def finish(response: Response) -> None:
            answer.complete(self.written(response))

        def fail(error: Exception) -> None:
            answer.complete(self.refuse(error))

        ready.then(finish, fail)
        return answer


def _answer_to(
    error: Exception, route: Route, context: Context, connection: Connection
) -> Response | None:
    """The answer to a handler's error; None after closing the connection."""
    name = route.request.__name__
    version = context.api_version
    if isinstance(error, HangUp | AbandonedError):
        connection.close(str(error))
        return None
    if isinstance(error, ApiError):
        reason = f"{name}: {error}"
        answer = error_response(route, version, error.code, error.message)
    else:
        logger.error("%s from %s failed", name, context.client_host, exc_info=error)
        reason = shortened(f"{name} failed: {error!r}")
        answer = error_response(
            route, version, ErrorCode.UNKNOWN_SERVER_ERROR, shortened(str(error))
        )
    if answer is None:
        connection.close(reason)
    return answer


def error_response(route: Route, version: int, code: ErrorCode, message: str) -> Response | None:
    """A response with nothing but an error; None if `version` has no field for it."""
    cls = route.request.RESPONSE
    names = {field.name for field in cls.FIELDS if version in field.versions}
    if "error_code" not in names:
        return None
    values: dict[str, Any] = {"error_code": code}
    if "error_message" in names:
        values["error_message"] = message or code.meaning
    return cls(**values)


def _name(header: RequestHeader) -> str:
    return ApiKey(header.api_key).name
