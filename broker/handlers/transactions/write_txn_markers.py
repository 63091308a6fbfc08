"""WriteTxnMarkers: a transaction coordinator ends transactions on the partitions led here.

Versions 1 and 2: v1 flexible, v2 names the producer's transaction protocol (KIP-1228).
Administrators send it too, to abort a hanging transaction (KIP-664), with coordinator epoch -1 or
the one from DescribeProducers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinators.markers import write_markers
from broker.requests.api_table import handles
from protocol.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred


@handles(WriteTxnMarkersRequest, versions="1-2")
def write_txn_markers(
    context: Context, request: WriteTxnMarkersRequest
) -> Deferred[WriteTxnMarkersResponse]:
    """Answer once each marker is committed or refused."""
    return write_markers(context.broker.coordination, request)
