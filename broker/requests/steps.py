"""Handlers that are generators: others are served while a long request is handled.

Such a handler yields wherever others may be served, usually between two elements, and returns the
response or a `Deferred` of it. A request of a few elements is handled at once; a longer one goes on
in slices, even after its client has hung up.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from broker.runtime.deferred import Deferred, errors_to, fail_if_cancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.requests.context import Context
    from broker.runtime.slices import Slices

P = ParamSpec("P")
R = TypeVar("R")

STEPS_AT_ONCE = 100
"""Steps before others are served: one or two milliseconds, as a step takes ten or twenty
microseconds. Fixed by the longest block of the loop.
"""

APPENDS_AT_ONCE = 10
"""The same of steps that append a record each."""

Steps = Generator[None, None, R]
"""The steps of a handler that returns R."""


def in_steps(
    handler: Callable[Concatenate[Context, P], Steps[R]],
) -> Callable[Concatenate[Context, P], R | Deferred[Any]]:
    """Make a generator a handler that dispatch can call."""
    return _handling(handler, STEPS_AT_ONCE)


def in_appending_steps(
    handler: Callable[Concatenate[Context, P], Steps[R]],
) -> Callable[Concatenate[Context, P], R | Deferred[Any]]:
    """The same for steps that append to a log, which takes ten times as long."""
    return _handling(handler, APPENDS_AT_ONCE)


def _handling(
    handler: Callable[Concatenate[Context, P], Steps[R]], at_once: int
) -> Callable[Concatenate[Context, P], R | Deferred[Any]]:
    @wraps(handler)
    def handle(context: Context, *args: P.args, **kwargs: P.kwargs) -> R | Deferred[Any]:
        steps = handler(context, *args, **kwargs)
        for _ in range(at_once):
            try:
                next(steps)
            except StopIteration as end:
                outcome: R = end.value
                return outcome
        return in_slices(context, steps)

    return cast("Callable[Concatenate[Context, P], R | Deferred[Any]]", handle)


def in_slices(context: Context, steps: Steps[object]) -> Deferred[Any]:
    """Result of the steps, once they are done, or that of the Deferred they return.

    Other requests are served before the first step, and after each slice; also while the response
    is encoded, as it may have as many parts as there were steps.
    """
    context.is_long = True
    answer: Deferred[Any] = Deferred()
    broker = context.broker
    task = broker.spawn(_finish(steps, broker.slices(), answer), "steps of a long request")
    fail_if_cancelled(answer, task)
    return answer


async def _finish(steps: Steps[object], slices: Slices, answer: Deferred[Any]) -> None:
    with errors_to(answer):
        try:
            while True:
                await slices.give_way()
                next(steps)
        except StopIteration as end:
            if isinstance(end.value, Deferred):
                answer.follow(end.value)
            else:
                answer.complete(end.value)
