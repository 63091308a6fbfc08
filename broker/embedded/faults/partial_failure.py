"""A request that fails for one of its topics and is served for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.embedded.faults.request_topics import is_of_topics, topic_of
from broker.runtime.deferred import Deferred
from broker.security.sasl.error_answers import NoPlaceError, error_answer
from protocol.errors import ApiError
from protocol.fields import Kind

if TYPE_CHECKING:
    from broker.embedded.faults.fault import Fault
    from broker.requests.context import Context
    from broker.requests.services import Handler
    from protocol.fields import Field
    from protocol.schema import Request, Response


def answered_in_part(
    fault: Fault, context: Context, request: Request, handler: Handler
) -> Response | Deferred[Any] | None:
    """The answer for both; None if the request is about the one topic alone, or names none."""
    array = _array_of_topics(request, context.api_version)
    if array is None:
        return None
    names = context.broker.replicas.names_by_id
    elements = list(getattr(request, array.name) or ())
    others = [one for one in elements if topic_of(one, names) != fault.topic]
    if not others or len(others) == len(elements):
        return None
    struck = [one for one in elements if topic_of(one, names) == fault.topic]
    try:
        failed = error_answer(
            _with(request, array, struck),
            context.api_version,
            ApiError(fault.error),
            is_deep=True,
        )
    except NoPlaceError:
        return None
    rest = handler(context, _with(request, array, others))

    def both(answer: Any) -> Any:  # noqa: ANN401 - of whatever request it is
        return None if answer is None else _joined(answer, failed, context.api_version)

    return rest.map(both) if isinstance(rest, Deferred) else both(rest)


def _array_of_topics(request: Request, version: int) -> Field | None:
    for field in request.FIELDS:
        if field.kind is Kind.ARRAY and is_of_topics(field.name) and version in field.versions:
            return field
    return None


def _with(request: Request, array: Field, elements: list[Any]) -> Request:
    """The same request for some of its topics."""
    values = {field.name: getattr(request, field.name) for field in request.FIELDS}
    return type(request)(**{**values, array.name: elements})


def _joined(answer: Any, failed: Response, version: int) -> Response:  # noqa: ANN401
    """One answer of two, of which the second has the errors."""
    if type(answer) is not type(failed):  # it is encoded already
        answer = type(failed).decode(version, b"".join(answer.encode_parts(version)))
    values = {field.name: getattr(answer, field.name) for field in failed.FIELDS}
    for field in failed.FIELDS:
        if field.kind is Kind.ARRAY:
            both = (values[field.name], getattr(failed, field.name))
            values[field.name] = [one for some in both for one in some or ()]
    return type(failed)(**values)
