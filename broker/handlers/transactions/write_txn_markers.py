"""WriteTxnMarkers: a transaction coordinator ends transactions on the partitions led here.

Versions 1 and 2: v1 flexible, v2 names the producer's transaction protocol (KIP-1228).
Administrators send it too, to abort a hanging transaction (KIP-664), with coordinator epoch -1 or
the one from DescribeProducers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinators.markers import write_markers
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster, would_be_allowed_on_cluster
from broker.requests.steps import in_steps
from protocol.acl_types import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred

Marker = WriteTxnMarkersResponse.Marker
Partition = WriteTxnMarkersResponse.Marker.Topic.Partition


@handles(WriteTxnMarkersRequest, versions="1-2")
@in_steps
def write_txn_markers(
    context: Context, request: WriteTxnMarkersRequest
) -> Steps[WriteTxnMarkersResponse | Deferred[WriteTxnMarkersResponse]]:
    """Answer once each marker is committed or refused.

    Allowed to brokers (CLUSTER_ACTION), and with ALTER on the cluster.
    """
    if would_be_allowed_on_cluster(context, AclOperation.ALTER) or is_allowed_on_cluster(
        context, AclOperation.CLUSTER_ACTION
    ):
        return write_markers(context.broker.coordination, request)
    return (yield from _refuse(request))


def _refuse(request: WriteTxnMarkersRequest) -> Steps[WriteTxnMarkersResponse]:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    response = WriteTxnMarkersResponse(markers=[])
    for marker in request.markers:
        answer = Marker(producer_id=marker.producer_id, topics=[])
        response.markers.append(answer)
        yield
        for topic in marker.topics:
            partitions: list[Partition] = []
            answer.topics.append(Marker.Topic(name=topic.name, partitions=partitions))
            for index in topic.partition_indexes:
                partitions.append(Partition(partition_index=index, error_code=code))
                yield
    return response
