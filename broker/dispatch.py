"""From a frame to a response: header, version check, decoding, handler, errors, encoding.

What is the same for all requests is here, once. A request costs no task: the handler is called, and
what it returns is a response, a `Deferred` of one, or None for "no answer".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from broker.context import Context
from broker.deferred import Deferred
from broker.routing import ROUTES, HangUp, Route
from protocol.api_keys import ApiKey
from protocol.errors import ApiError, ErrorCode
from protocol.headers import RequestHeader, parse_request_header, response_front
from protocol.messages.api_versions import ApiVersionsResponse
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from broker.app import Broker
    from broker.connection import Connection
    from broker.peer import Peer
    from protocol.schema import Part, Request, Response

logger = logging.getLogger(__name__)


class Dispatcher:
    """Serves the frames of all connections of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._clock = broker.clock

    def dispatch(
        self, frame: memoryview, peer: Peer, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve one frame (without its size). Closes the connection when it cannot be answered."""
        now_ms = self._clock.now_ms()
        peer.is_active = True
        try:
            header, position = parse_request_header(frame)
            route = ROUTES.get(header.api_key)
            if route is None:
                connection.close(f"request {_name(header)} is not served (see GAPS.md)")
                return None
            first_version, last_version = route.versions
            if not first_version <= header.api_version <= last_version:
                return self._refuse_version(header, route, connection)
            # Bytes left over are let pass, as Apache does: librdkafka 2.16 sends a null array of
            # topics in Metadata v13 as four bytes where one belongs.
            request, _ = route.request.decode_from(header.api_version, frame, position)
        except DecodeError as error:
            connection.close(f"malformed request of {len(frame)} bytes: {error}")
            return None
        context = Context(
            self._broker,
            header.api_version,
            header.client_id,
            peer.listener,
            peer.host,
            peer.principal,
            now_ms,
            connection,
        )
        response = self._call(route, context, request, connection)
        if response is None:
            return None
        if not isinstance(response, Deferred):
            return encode_response(header, response)
        return _encode_later(header, response, connection)

    def _call(
        self, route: Route, context: Context, request: Request, connection: Connection
    ) -> Response | Deferred[Response] | None:
        version = context.api_version
        try:
            answer: Response | Deferred[Response] | None = route.handler(context, request)
        except HangUp as reason:
            connection.close(str(reason))
            answer = None
        except ApiError as error:
            answer = error_response(route, version, error.code, error.message)
            if answer is None:
                connection.close(f"{route.request.__name__}: {error}")
        except Exception as error:
            logger.exception("%s from %s failed", route.request.__name__, context.client_host)
            answer = error_response(route, version, ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
            if answer is None:
                connection.close(f"{route.request.__name__} failed: {error!r}")
        return answer

    def _refuse_version(
        self, header: RequestHeader, route: Route, connection: Connection
    ) -> list[Part] | None:
        """ApiVersions tells the client what to try instead (KIP-511); all others hang up."""
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
        header.api_version = 0
        return encode_response(header, answer)


def encode_response(header: RequestHeader, response: Response) -> list[Part]:
    """Size, response header and body, ready to be sent."""
    parts = response.encode_parts(header.api_version)
    size = sum(map(len, parts)) if len(parts) > 1 else len(parts[0])
    parts.insert(0, response_front(header.correlation_id, header.api_key, header.api_version, size))
    return parts


def _encode_later(
    header: RequestHeader, response: Deferred[Any], connection: Connection
) -> Deferred[list[Part] | None]:
    """The bytes of a response that is to come; of None, no answer; a HangUp ends the connection."""
    encoded: Deferred[list[Part] | None] = Deferred(
        is_ordered_only=response.is_ordered_only, on_abandon=response.abandon
    )

    def finish(value: Response | HangUp | None) -> None:
        if isinstance(value, HangUp):
            connection.close(str(value))
            value = None
        encoded.complete(None if value is None else encode_response(header, value))

    response.then(finish)
    return encoded


def error_response(route: Route, version: int, code: ErrorCode, message: str) -> Response | None:
    """A response that says one thing: this error. None when `version` has no place for that."""
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
