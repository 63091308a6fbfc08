"""Encoding of a handler's outcome: responses, errors, deferred answers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar, cast

from broker.requests.encoded_response import TooLargeError, encoded_in_slices
from broker.requests.long_requests import Remains, TooManyElementsError
from broker.runtime.deferred import AbandonedError, Deferred, HangUp, in_background
from protocol.errors import ApiError, ErrorCode, shortened
from protocol.schema import UNDECODABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.network.connection import Connection
    from broker.requests.api_table import Route
    from broker.requests.context import Context
    from broker.requests.versioned_route import VersionedRoute
    from protocol.schema import Part, Request, Response

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Answering:
    """Makes the bytes of one answer, now or later: of a response, or of an error."""

    __slots__ = ("connection", "context", "correlation_id", "served")

    def __init__(
        self,
        served: VersionedRoute,
        correlation_id: int,
        context: Context,
        connection: Connection,
    ) -> None:
        self.served = served
        self.correlation_id = correlation_id
        self.context = context
        self.connection = connection

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
        """The bytes of a response, made in slices if it may be long."""
        return self._in_slices(response) if self.context.is_long else self.written(response)

    def _in_slices(self, response: Response) -> Deferred[list[Part] | None]:
        """Others are served while the answer is written."""
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

    def written(self, response: Response) -> list[Part] | None:
        """The bytes of a response, now; those of an error if it cannot be written."""
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
            is_ordered_only=response.is_ordered_only,
            is_unserved=response.is_unserved,
            on_abandon=response.abandon,
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


def answer_when_read(
    answering: Answering, read: Callable[[], Coroutine[Any, Any, Request]], size: int
) -> Deferred[list[Part] | None]:
    """Handle a long request once it is read, and answer it in slices; `size` is its frame's."""
    context = answering.context
    meter = context.meter
    if meter is not None:
        meter.pause()

    async def read_on() -> list[Part] | Deferred[list[Part] | None] | None:
        try:
            request = await read()  # made here, as a task may end before it begins
        except UNDECODABLE as error:
            refuse_frame(answering.served, error, size, answering.connection)
            return None
        if meter is not None:
            meter.resume()
        context.now_ms = context.broker.clock.now_ms()
        context.is_long = True
        context.remains = Remains(context.broker.leftovers.add, context.held)
        context.remains.keep(request)
        return answering.handle(request)

    spawn = context.broker.spawn
    return in_background(spawn, read_on(), "long request", is_unserved=True).map(_itself)


def refuse_frame(
    served: VersionedRoute | None, error: Exception, size: int, connection: Connection
) -> None:
    """Close a connection that sent an undecodable frame."""
    # In words: an error that its own frame holds is a garbage cycle with the connection.
    reason = str(error if served is None else served.route.request.refusal(served.version, error))
    kind = "request" if isinstance(error, TooManyElementsError) else "malformed request"
    connection.close(f"{kind} of {size} bytes: {reason}")


def _itself(answer: T) -> T:
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
        if answer is not None and isinstance(error, TooLargeError):
            logger.warning("%s from %s failed: %s", name, context.client_host, error.message)
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
