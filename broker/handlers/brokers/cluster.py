"""DescribeCluster: the cluster's id, controller and brokers.

Versions 0 to 2. From v1 a client names the kind of endpoint it expects: 1 for brokers, 2 for
controllers; only the first is served. From v2 it may ask for fenced brokers; there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorized_operations import cluster_operations
from protocol.errors import ApiError, ErrorCode
from protocol.messages.cluster import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from broker.requests.context import Context

BROKERS, CONTROLLERS = 1, 2


@handles(DescribeClusterRequest, versions="0-2")
def describe_cluster(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Answer from the metadata cache. Raises ApiError for another kind of endpoint."""
    if request.endpoint_type == CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "This is a broker's endpoint, not a controller's.",
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"There is no endpoint type {request.endpoint_type}.",
        )
    cache = context.broker.metadata
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=BROKERS,
        cluster_id=context.broker.cluster_id,
        controller_id=cache.live_controller_id,
        brokers=[
            DescribeClusterResponse.Broker(
                broker_id=node.id, host=node.host, port=node.port, rack=node.rack
            )
            for node in cache.nodes(context.listener)
        ],
        cluster_authorized_operations=cluster_operations(
            context, is_requested=request.include_cluster_authorized_operations
        ),
    )
