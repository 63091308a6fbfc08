"""Controller to broker: the cluster as it is now (ZooKeeper mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class UpdateMetadataPartitionState(Struct):
    """Part of UpdateMetadataRequest."""

    topic_name: str = string("0-4", default="")
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    zk_version: int = int32()
    replicas: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "4+", default=())


class UpdateMetadataRequest(Request, key=ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+"):
    """The controller tells a broker what the cluster looks like."""

    class TopicState(Struct):
        """One of the `topic_states`."""

        topic_name: str = string()
        topic_id: UUID = uuid("7+", default=ZERO_UUID)
        partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState)

    class LiveBroker(Struct):
        """One of the `live_brokers`."""

        class Endpoint(Struct):
            """One of the `endpoints`."""

            port: int = int32()
            host: str = string()
            listener: str = string("3+", default="")
            security_protocol: int = int16()

        id: int = int32()
        v0_host: str = string("0", default="")
        v0_port: int = int32("0", default=0)
        endpoints: list[Endpoint] = array(Endpoint, "1+", default=())
        rack: str | None = string("2+", default="", nullable="0+")

    controller_id: int = int32()
    is_kraft_controller: bool = boolean("8+", default=False)
    type: int = int8("8+", default=0, tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        UpdateMetadataPartitionState, "0-4", default=()
    )
    topic_states: list[TopicState] = array(TopicState, "5+", default=())
    live_brokers: list[LiveBroker] = array(LiveBroker)


class UpdateMetadataResponse(
    Response, request=UpdateMetadataRequest, versions="0-8", flexible="6+"
):
    """Answer to UpdateMetadataRequest."""

    error_code: int = int16()
