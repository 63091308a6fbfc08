"""Controller to broker: the current metadata of the cluster (ZooKeeper mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class UpdateMetadataPartitionState(Struct):
    """Metadata of one partition, for clients."""

    topic_name: str = string("0-4", default="")
    """Before v5; later the topic is named once, in TopicState."""
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    """Broker id; -1 for none, -2 while the topic is being deleted."""
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    zk_version: int = int32()
    """Version of the partition's state znode."""
    replicas: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "4+", default=())
    """Replicas on brokers that are down or on failed disks (KIP-112)."""


class UpdateMetadataRequest(Request, key=ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+"):
    """Updates a broker's metadata cache."""

    class TopicState(Struct):
        """The partitions of one topic."""

        topic_name: str = string()
        topic_id: UUID = uuid("7+", default=ZERO_UUID)
        partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)

    class LiveBroker(Struct):
        """A broker that is alive and its addresses."""

        class Endpoint(Struct):
            """The address of one listener."""

            port: int = int32()
            host: str = string()
            listener: str = string("3+", default="")
            security_protocol: int = int16()
            """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

        id: int = int32()
        v0_host: str = string("0", default="")
        v0_port: int = int32("0", default=0)
        endpoints: list[Endpoint] = array(Endpoint, "1+", default=())
        rack: str | None = string("2+", default="", nullable="0+")

    controller_id: int = int32()
    is_kraft_controller: bool = boolean("8+", default=False)
    type: int = int8("8+", default=0, tag=0)
    """0 unknown, 1 some partitions, 2 all there are (KIP-866)."""
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1)
    """Of the broker that is meant (KIP-380): STALE_BROKER_EPOCH in an earlier life; -1 skips the
    check.
    """
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        UpdateMetadataPartitionState, "0-4", default=()
    )
    topic_states: list[TopicState] = array(TopicState, "5+", default=())
    live_brokers: list[LiveBroker] = array(LiveBroker)
    """All that are alive; always complete."""


class UpdateMetadataResponse(
    Response, request=UpdateMetadataRequest, versions="0-8", flexible="6+"
):
    """Answer to UpdateMetadataRequest."""

    error_code: int = int16()
