"""Brokers, topics and partitions of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class MetadataRequest(Request, key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """Ask for the brokers, and for the partitions and leaders of some or all topics."""

    class Topic(Struct):
        """One topic, by name or, since v10, by id."""

        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        name: str | None = string(nullable="10+")
        """Null when the id is given (answered since v12)."""

    topics: list[Topic] | None = array(Topic, nullable="1+")
    """Null asks for all topics (in v0 an empty list does), an empty list for none."""
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    """True if a topic that does not exist may be created, if the broker allows that."""
    include_cluster_authorized_operations: bool = boolean("8-10", default=False)
    include_topic_authorized_operations: bool = boolean("8+", default=False)


class MetadataResponse(Response, request=MetadataRequest, versions="0-13", flexible="9+"):
    """Answer to MetadataRequest."""

    class Broker(Struct):
        """A broker that is alive, at the listener that the request came by."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string("1+", default=None, nullable="0+")

    class Topic(Struct):
        """A topic and its partitions."""

        class Partition(Struct):
            """Replicas and leader of a partition."""

            error_code: int = int16()
            """LEADER_NOT_AVAILABLE, or in v0 REPLICA_NOT_AVAILABLE; the rest is filled
            nevertheless.
            """
            partition_index: int = int32()
            leader_id: int = int32()
            """-1 if there is none."""
            leader_epoch: int = int32("7+", default=-1)
            """Lets clients tell stale metadata from new (KIP-320)."""
            replica_nodes: list[int] = array(int32)
            isr_nodes: list[int] = array(int32)
            offline_replicas: list[int] = array(int32, "5+", default=())
            """Replicas on brokers that are down or on failed disks (KIP-112)."""

        error_code: int = int16()
        name: str | None = string(nullable="12+")
        """Null for a requested id without a topic."""
        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        is_internal: bool = boolean("1+", default=False)
        """True for `__consumer_offsets` and `__transaction_state`."""
        partitions: list[Partition] = array(Partition)
        topic_authorized_operations: int = int32("8+", default=-2147483648)
        """Bits of the AclOperation codes; the least int32 if not asked for."""

    throttle_time_ms: int = int32("3+", default=0)
    brokers: list[Broker] = array(Broker)
    cluster_id: str | None = string("2+", default=None, nullable="0+")
    controller_id: int = int32("1+", default=-1)
    """-1 if there is none."""
    topics: list[Topic] = array(Topic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
    """Bits of the AclOperation codes; the least int32 if not asked for."""
    error_code: int = int16("13+", default=0)
    """Of the whole request (v13): REBOOTSTRAP_REQUIRED (KIP-1102)."""
