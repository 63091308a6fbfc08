"""Which function serves which request. ApiVersions is derived from this table and nothing else."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from broker.runtime.deferred import HangUp
from protocol.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from protocol.schema import Request, Response

Req = TypeVar("Req", bound="Request")


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """One request served, in which versions, by which function."""

    request: type[Request]
    versions: Versions
    """Versions that are understood; others end the connection."""
    advertised: Versions
    """Versions listed in ApiVersions. Wider than `versions` for Produce only (KAFKA-18659)."""
    handler: Callable[[Context, Any], Any]
    is_for_clusters: bool = False
    """Asked by other brokers only: a broker that is alone does not serve it."""


ROUTES: dict[int, Route] = {}
"""By API key."""


def handles(
    request: type[Req], versions: str, *, advertised: str = "", for_clusters: bool = False
) -> Callable[
    [Callable[[Context, Req], Response | Deferred[Any] | None]],
    Callable[[Context, Req], Response | Deferred[Any] | None],
]:
    """Register a function as the handler of `request`.

    It returns the response, a `Deferred` of it, or None when there is nothing to answer (acks=0). A
    `Deferred` may also bring None, or the HangUp that it can raise no more. With `for_clusters`, a
    broker that is alone hangs up on who asks, and does not list the request.
    """

    def register(
        handler: Callable[[Context, Req], Response | Deferred[Any] | None],
    ) -> Callable[[Context, Req], Response | Deferred[Any] | None]:
        key = int(request.API_KEY)
        assert key not in ROUTES, f"two handlers for {request.__name__}"
        served = Versions.parse(versions)
        ROUTES[key] = Route(
            request=request,
            versions=served,
            advertised=Versions.parse(advertised) if advertised else served,
            handler=_refusing_when_alone(handler) if for_clusters else handler,
            is_for_clusters=for_clusters,
        )
        return handler

    return register


def _refusing_when_alone(handler: Callable[[Context, Any], Any]) -> Callable[[Context, Any], Any]:
    def handle(context: Context, request: Request) -> object:
        if not context.broker.is_in_cluster:
            raise HangUp(f"{type(request).__name__} is for clusters; this broker is alone")
        return handler(context, request)

    return handle
