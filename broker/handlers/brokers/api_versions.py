"""ApiVersions: the requests that this broker serves, from the API table, and its features.

Versions 0 to 4: v3 features and the client's software (KIP-511, KIP-584), v4 also lists features
that can be at level 0, which v3 clients cannot read.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from broker.requests.api_table import ROUTES, handles
from controller.features.levels import FEATURES
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from broker.requests.context import Context

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FIRST_VERSION_WITH_SOFTWARE_NAME = 3
FIRST_VERSION_WITH_LEVEL_0 = 4
OF_TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
"""Listed where there is a place for metrics of clients: they would push them, and see errors."""


@handles(ApiVersionsRequest, versions="0-4")
def api_versions(context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List requests and versions. A malformed software name is refused (KIP-511)."""
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    broker, client = context.broker, context.client
    features = broker.features
    if client is not None and request.client_software_name:
        client.software = request.client_software_name, request.client_software_version
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=_served(
            in_cluster=broker.is_in_cluster, takes_metrics=broker.telemetry is not None
        ),
        supported_features=[
            ApiVersionsResponse.SupportedFeature(
                name=feature.name, min_version=feature.first, max_version=feature.last
            )
            for feature in FEATURES
            if feature.first > 0 or context.api_version >= FIRST_VERSION_WITH_LEVEL_0
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeature(
                name=name, max_version_level=level, min_version_level=level
            )
            for name, level in sorted(features.levels.items())
        ],
    )


@cache
def _served(*, in_cluster: bool, takes_metrics: bool) -> list[ApiVersionsResponse.ApiKey]:
    return [
        ApiVersionsResponse.ApiKey(
            api_key=key,
            min_version=route.advertised.first,
            max_version=route.advertised.last,
        )
        for key, route in sorted(ROUTES.items())
        if route.is_served(in_cluster=in_cluster) and (takes_metrics or key not in OF_TELEMETRY)
    ]
