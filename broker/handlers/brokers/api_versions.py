"""ApiVersions: the requests that this broker serves, from the API table, and its features.

Versions 0 to 5: v3 features and the client's software (KIP-511, KIP-584), v4 also lists features
that can be at level 0, which v3 clients cannot read, v5 the cluster and the node that the client
means to reach (KIP-1242).
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
NO_NODE = -1
OF_TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
"""Listed where there is a place for metrics of clients: they would push them, and see errors."""


@handles(ApiVersionsRequest, versions="0-5")
def api_versions(context: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List requests and versions; refuse malformed names (KIP-511) and strays (KIP-1242)."""
    refusal = _refusal(context, request)
    if refusal is not None:
        return ApiVersionsResponse(error_code=refusal, api_keys=[])
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


def _refusal(context: Context, request: ApiVersionsRequest) -> ErrorCode | None:
    names_cluster, names_node = request.cluster_id is not None, request.node_id != NO_NODE
    if names_cluster != names_node:
        return ErrorCode.INVALID_REQUEST
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ErrorCode.INVALID_REQUEST
    own = context.broker.cluster_id, context.broker.config.broker_id
    is_authenticating = context.client is not None and context.client.is_authenticating
    if names_cluster and not is_authenticating and (request.cluster_id, request.node_id) != own:
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return None


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
