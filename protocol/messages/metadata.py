"""What brokers, topics and partitions there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class MetadataRequest(Request, key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """Ask which brokers there are and who leads the partitions of some or all topics."""

    class Topic(Struct):
        """One of the `topics`."""

        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        name: str | None = string(nullable="10+")

    topics: list[Topic] | None = array(Topic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10", default=False)
    include_topic_authorized_operations: bool = boolean("8+", default=False)


class MetadataResponse(Response, request=MetadataRequest, versions="0-13", flexible="9+"):
    """Answer to MetadataRequest."""

    class Broker(Struct):
        """One of the `brokers`."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string("1+", default=None, nullable="0+")

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32("7+", default=-1)
            replica_nodes: list[int] = array(int32)
            isr_nodes: list[int] = array(int32)
            offline_replicas: list[int] = array(int32, "5+", default=())

        error_code: int = int16()
        name: str | None = string(nullable="12+")
        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        is_internal: bool = boolean("1+", default=False)
        partitions: list[Partition] = array(Partition)
        topic_authorized_operations: int = int32("8+", default=-2147483648)

    throttle_time_ms: int = int32("3+", default=0)
    brokers: list[Broker] = array(Broker)
    cluster_id: str | None = string("2+", default=None, nullable="0+")
    controller_id: int = int32("1+", default=-1)
    topics: list[Topic] = array(Topic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
    error_code: int = int16("13+", default=0)
