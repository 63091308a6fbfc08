"""ApiVersions: what this broker serves, straight from the route table."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from broker.routing import ROUTES, handles
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from broker.context import Context

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FIRST_VERSION_WITH_SOFTWARE_NAME = 3


@handles(ApiVersionsRequest, versions="0-4")
def api_versions(context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List requests and versions. A malformed software name is refused (KIP-511)."""
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=_served())


@cache
def _served() -> list[ApiVersionsResponse.ApiKey]:
    return [
        ApiVersionsResponse.ApiKey(
            api_key=key,
            min_version=route.advertised.first,
            max_version=route.advertised.last,
        )
        for key, route in sorted(ROUTES.items())
    ]
