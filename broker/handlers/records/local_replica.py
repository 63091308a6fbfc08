"""The replica of a partition on this broker, or the error that sends a client elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.requests.services import BrokerServices


def require_replica(broker: BrokerServices, topic: str, index: int) -> Partition:
    """The replica of a partition here, leader or follower. Raises ApiError `absence_error`."""
    partition = broker.replicas.partition(topic, index)
    if partition is None:
        raise ApiError(absence_error(broker, topic, index))
    return partition


def absence_error(broker: BrokerServices, topic: str, index: int) -> ErrorCode:
    """The error for a partition without a replica here.

    UNKNOWN_TOPIC_OR_PARTITION if the cluster has no such partition, NOT_LEADER_OR_FOLLOWER if
    other brokers hold it: the client then refreshes its metadata and asks them.
    """
    if broker.metadata.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER
