"""Access of one fetch request to topics: authorized once for each, however often it reads.

And the codecs its sender can read, and the error for a partition that is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.fetch.fetch_sessions import FIRST_VERSION_BY_ID
from broker.handlers.records.local_replica import absence_error
from broker.requests.authorization import is_allowed, is_allowed_on_cluster
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.fetch.fetched_partition import FetchedPartition
    from broker.partitions.partition import Partition
    from broker.requests.context import Context

FIRST_VERSION_WITH_ZSTD: Final = 10
ZSTD: Final = "zstd"
"""The `compression.type` of topics whose batches are all recompressed with it."""


class FetchAccess:
    """Consumers ask for READ on each topic, followers for CLUSTER_ACTION."""

    __slots__ = ("_answers", "_context", "_is_broker")

    def __init__(self, context: Context, *, is_by_follower: bool) -> None:
        self._context = context
        self._answers: dict[str, bool] = {}
        self._is_broker: bool | None = None
        """Of a follower's request, whether a broker sends it; None for that of a consumer."""
        if is_by_follower:
            self._is_broker = is_allowed_on_cluster(context, AclOperation.CLUSTER_ACTION)

    def require(self, wanted: FetchedPartition) -> None:
        """Raise ApiError unless the partition may be read."""
        may = self._is_broker
        if may is None:
            name = wanted.topic or self._name(wanted)
            may = self._answers.get(name)
            if may is None:
                may = self._answers[name] = is_allowed(
                    self._context, AclOperation.READ, ResourceType.TOPIC, name
                )
        if not may:
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def _name(self, wanted: FetchedPartition) -> str:
        """The name of a topic that is given by id. Raises ApiError UNKNOWN_TOPIC_ID."""
        name = _name_of_id(self._context, wanted)
        if not name:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return name


def access_of(context: Context, *, is_by_follower: bool) -> FetchAccess | None:
    """The access of a request; None if everybody may read everything."""
    if context.broker.authorizer is None:
        return None
    return FetchAccess(context, is_by_follower=is_by_follower)


def check_codec(partition: Partition, api_version: int, *, is_by_follower: bool) -> None:
    """Refuse a consumer that does not know zstd where all batches are in it (KIP-110).

    Others may hold zstd, too, if that is what came; as in Apache Kafka 3.9 they are served. Raises
    ApiError UNSUPPORTED_COMPRESSION_TYPE.
    """
    is_old = api_version < FIRST_VERSION_WITH_ZSTD and not is_by_follower
    if is_old and partition.log.config.compression_type == ZSTD:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Fetch v10")


def absence_of(context: Context, wanted: FetchedPartition) -> ErrorCode:
    """The error for a partition without a replica here, by the name or the id of its topic.

    A session knows by which name an id went: once the topic is deleted it is the name that is
    unknown, or has another id. Without one it is the id that is unknown.
    """
    broker, name = context.broker, wanted.topic
    if context.api_version >= FIRST_VERSION_BY_ID:
        name = wanted.known_name = _name_of_id(context, wanted)
        if not name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if broker.replicas.partition(name, wanted.index) is not None:
            return ErrorCode.INCONSISTENT_TOPIC_ID
    return absence_error(broker, name, wanted.index)


def _name_of_id(context: Context, wanted: FetchedPartition) -> str:
    """The topic's name, or the one last known to the session; "" for an unknown id."""
    broker, topic_id = context.broker, wanted.topic_id
    name = broker.replicas.names_by_id.get(topic_id) or broker.metadata.topic_name(topic_id)
    return name or wanted.known_name
