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


ROUTES: dict[int, Route] = {}
"""By API key."""


def handles(
    request: type[Req], versions: str, *, advertised: str = "", for_clusters: bool = False
) -> Callable[
    [Callable[[Context, Req], Response | Deferred[Any] | None]],
    Callable[[Context, Req], Response | Deferred[Any] | None],
]:
    """Register a function as the handler of `request`.

    It returns the response, a `Deferred` of it, or None for no answer (acks=0), or raises ApiError
    or HangUp; a `Deferred` may complete with None or fail with either. With `for_clusters`, a
    single broker closes the connection at such a request, and does not list it.
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
