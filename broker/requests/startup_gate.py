"""Holds clients' requests at a broker that has just joined a cluster, until it has its metadata.

Its listeners are open before that, since the controller must reach it. A client that found no
topics would fail the records it has queued for them; so its requests wait, and if that takes too
long its connection is closed: it then asks another broker.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from broker.runtime.deferred import HangUp, in_background
from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.requests.api_table import Route
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from protocol.schema import Request

    Handler = Callable[[Context, Any], Any]

LONGEST_SECONDS: Final = 10
"""Longest time that a request is held. Fixed well below the 30 s after which clients give up."""

NEVER_HELD: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.FETCH,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.WRITE_TXN_MARKERS,
    }
)
"""Requests that brokers send each other and clients may send too."""


def is_held(route: Route) -> bool:
    """Return whether a request is held: those of clients are."""
    return not route.is_for_clusters and route.request.API_KEY not in NEVER_HELD


def holding(handler: Handler) -> Handler:
    """Make a handler wait for the cluster's metadata; its request keeps the buffer."""

    def handle(context: Context, request: Request) -> Deferred[Any]:
        broker = context.broker

        async def wait() -> None:
            try:
                async with asyncio.timeout(LONGEST_SECONDS):
                    await broker.metadata.wait_until(lambda: not broker.metadata.is_awaited)
            except TimeoutError:
                raise HangUp("this broker does not know the cluster yet") from None

        def serve(_: None) -> object:
            return handler(replace(context, now_ms=broker.clock.now_ms()), request)

        name = "request to a broker that joins"
        return in_background(broker.spawn, wait(), name, is_unserved=True).map(serve)

    return handle
