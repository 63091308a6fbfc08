"""The handler of each request. ApiVersions is derived from this table and nothing else."""

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
    """One request with its handler, and the versions served."""

    request: type[Request]
    versions: Versions
    """The versions served; a request in any other ends the connection."""
    advertised: Versions
    """The versions listed in ApiVersions: wider than `versions` for Produce only (KAFKA-18659)."""
    handler: Callable[[Context, Any], Any]
    is_for_clusters: bool = False
    """Sent by other brokers only: a single broker does not serve it."""
    is_for_one: bool = False
    """True if a broker with ZooKeeper lacks its subject, and does not serve it."""

    def is_served(self, *, in_cluster: bool) -> bool:
        """Return whether a broker with, or without, ZooKeeper serves it."""
        return not (self.is_for_one if in_cluster else self.is_for_clusters)


ROUTES: dict[int, Route] = {}
"""By API key."""


def handles(
    request: type[Req],
    versions: str,
    *,
    advertised: str = "",
    for_clusters: bool = False,
    for_one: bool = False,
) -> Callable[
    [Callable[[Context, Req], Response | Deferred[Any] | None]],
    Callable[[Context, Req], Response | Deferred[Any] | None],
]:
    """Register a function as the handler of `request`.

    It returns the response, a `Deferred` of it, or None for no answer (acks=0), or raises ApiError
    or HangUp; a `Deferred` may complete with None or fail with either. With `for_clusters`, a
    single broker closes the connection at such a request, and does not list it; with `for_one`,
    brokers with ZooKeeper do so.
    """

    def register(
        handler: Callable[[Context, Req], Response | Deferred[Any] | None],
    ) -> Callable[[Context, Req], Response | Deferred[Any] | None]:
        key = int(request.API_KEY)
        assert key not in ROUTES, f"two handlers for {request.__name__}"
        served = Versions.parse(versions)
        route = ROUTES[key] = Route(
            request=request,
            versions=served,
            advertised=Versions.parse(advertised) if advertised else served,
            handler=_refusing(handler, key) if for_clusters or for_one else handler,
            is_for_clusters=for_clusters,
            is_for_one=for_one,
        )
        assert route.is_served(in_cluster=True) or route.is_served(in_cluster=False), request
        return handler

    return register


def _refusing(handler: Callable[[Context, Any], Any], key: int) -> Callable[[Context, Any], Any]:
    def handle(context: Context, request: Request) -> object:
        route, in_cluster = ROUTES[key], context.broker.is_in_cluster
        name = type(request).__name__
        if route.is_for_clusters and not in_cluster:
            raise HangUp(f"{name} is for clusters; this broker is alone")
        if route.is_for_one and in_cluster:
            raise HangUp(f"{name} is for brokers without ZooKeeper")
        return handler(context, request)

    return handle
