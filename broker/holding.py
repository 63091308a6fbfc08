"""Clients wait at a broker that has just joined others, until it was told what there is.

Its listeners are open before that, since the controller must reach it. A client that heard of no
topics would fail what it has queued for them; so it hears nothing, and is hung up on when that
takes too long: it then asks another broker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker.deferred import Deferred
from broker.routing import HangUp
from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.context import Context
    from broker.routing import Route
    from protocol.schema import Request

    Handler = Callable[[Context, Any], Any]

LONGEST_SECONDS: Final = 10

NEVER_HELD: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.WRITE_TXN_MARKERS,
    }
)
"""What brokers ask each other, besides what only they ask."""


def is_held(route: Route) -> bool:
    """Whether a request is one of clients."""
    return not route.is_for_clusters and route.request.API_KEY not in NEVER_HELD


def holding(handler: Handler, refuse: Callable[[Exception, Context], object]) -> Handler:
    """Make a handler wait; `refuse` makes the answer when it raises."""

    def handle(context: Context, request: Request) -> Deferred[Any]:
        metadata = context.broker.metadata

        async def serve_when_told() -> None:
            try:
                async with asyncio.timeout(LONGEST_SECONDS):
                    await metadata.wait_until(lambda: not metadata.is_awaited)
            except TimeoutError:
                answer.complete(HangUp("this broker does not know the cluster yet"))
                return
            try:
                response = handler(context, request)
            except Exception as error:  # noqa: BLE001 - as dispatch does
                response = refuse(error, context)
            if isinstance(response, Deferred):
                begun.append(response)
                response.then(give)
            else:
                give(response)

        def give(response: object) -> None:
            answer.complete(response)

        def abandon() -> None:
            waiting.cancel()
            for one in begun:
                one.abandon()

        begun: list[Deferred[Any]] = []
        waiting = context.broker.spawn(serve_when_told(), "request to a broker that joins")
        answer: Deferred[Any] = Deferred(on_abandon=abandon)
        return answer

    return handle
