"""Stands before the handlers of an embedded broker: notes requests, and does what faults say."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.embedded.faults.fault import Fault, Mischief
from broker.embedded.faults.partial_failure import answered_in_part
from broker.embedded.faults.request_topics import topics_of
from broker.runtime.deferred import Deferred, HangUp
from broker.security.sasl.error_answers import NoPlaceError, error_answer
from protocol.errors import ApiError, ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from broker.embedded.faults.active_faults import ActiveFaults
    from broker.embedded.faults.sent_requests import SentRequests
    from broker.requests.api_table import Route
    from broker.requests.context import Context
    from broker.requests.services import Handler
    from protocol.schema import Request

CLIENT_REPLICA = -1
"""`replica_id` of clients; followers send their broker id."""
NO_SESSION = 0


class Interposition:
    """`broker.requests.services.Interpose` of one broker."""

    def __init__(self, faults: ActiveFaults, sent: SentRequests, own_listener: str = "") -> None:
        """`own_listener` is the one on which brokers talk to each other."""
        self._faults = faults
        self._sent = sent
        self._own_listener = own_listener

    def __call__(self, route: Route, handler: Handler) -> Handler:
        """The same handler, for requests that are noted, and may be struck first."""
        if route.is_for_clusters:
            return handler

        def handle(context: Context, request: Request) -> object:
            if context.listener == self._own_listener:
                return handler(context, request)
            self._sent.note(context, request)
            names = context.broker.replicas.names_by_id
            fault = self._faults.strike(
                type(request), context.client_id, partial(topics_of, request, names)
            )
            if fault is None:
                return handler(context, request)
            return _struck(fault, context, request, handler)

        return handle


def _struck(fault: Fault, context: Context, request: Request, handler: Handler) -> Any:  # noqa: ANN401
    """Result of a request that a fault strikes."""
    match fault.mischief:
        case Mischief.FAIL:
            return _failed(fault, context, request, handler)
        case Mischief.DELAY:
            return _delayed(fault, context, request, handler)
        case Mischief.DISCONNECT:
            raise _hang_up(fault, request)
    return _unanswered(fault, request, handler(context, request))


def _unanswered(fault: Fault, request: Request, answer: Any) -> Deferred[Any]:  # noqa: ANN401
    """Substitute for a response, or for an error that comes later."""
    instead: Deferred[Any] = Deferred()

    def handled(_: object) -> None:
        if fault.mischief is not Mischief.WITHHOLD_ANSWER:
            instead.fail(_hang_up(fault, request))

    if isinstance(answer, Deferred):
        answer.then(handled, handled)
    else:
        handled(answer)
    return instead


def _delayed(fault: Fault, context: Context, request: Request, handler: Handler) -> Deferred[Any]:
    def cancel() -> None:
        timer.cancel()

    over: Deferred[None] = Deferred(on_abandon=cancel)
    timer = context.broker.timers.schedule(fault.seconds * 1000, lambda: over.complete(None))

    def serve(_: None) -> object:
        return handler(dataclasses.replace(context, now_ms=context.broker.clock.now_ms()), request)

    return over.map(serve)


def _failed(fault: Fault, context: Context, request: Request, handler: Handler) -> Any:  # noqa: ANN401
    names = context.broker.replicas.names_by_id
    if isinstance(request, MetadataRequest):
        return _with_topic_errors(fault, handler(context, request), context, names)
    is_fetch = isinstance(request, FetchRequest)
    if isinstance(request, FetchRequest) and request.session_id != NO_SESSION:
        # It names no partitions: this error makes the client send them all again.
        return FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), responses=[])
    if fault.topic is not None and not is_fetch:
        rest = answered_in_part(fault, context, request, handler)
        if rest is not None:
            return rest
    if getattr(request, "acks", None) == 0:
        raise _hang_up(fault, request)  # as a broker does that cannot say what went wrong
    try:
        is_deep = is_fetch or fault.topic is not None
        return error_answer(request, context.api_version, ApiError(fault.error), is_deep=is_deep)
    except NoPlaceError:
        raise _hang_up(fault, request) from None


def _with_topic_errors(
    fault: Fault,
    answer: Any,  # noqa: ANN401 - now or later
    context: Context,
    names: Mapping[UUID, str],
) -> Any:  # noqa: ANN401 - as above
    """Set errors on topics, and keep the brokers: a client needs them to ask again."""
    if isinstance(answer, Deferred):
        return answer.map(lambda one: _with_topic_errors(fault, one, context, names))
    if not isinstance(answer, MetadataResponse):
        whole = b"".join(answer.encode_parts(context.api_version))
        answer = MetadataResponse.decode(context.api_version, whole)
    for topic in answer.topics:
        if fault.topic in (None, topic.name or names.get(topic.topic_id)):
            topic.error_code = int(fault.error)
            topic.partitions = []
    return answer


def _hang_up(fault: Fault, request: Request) -> HangUp:
    return HangUp(f"{type(request).__name__}: a test had it so ({fault.mischief.value})")
