"""Controller to broker: stop or delete replicas (ZooKeeper mode)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class StopReplicaRequest(Request, key=ApiKey.STOP_REPLICA, versions="0-4", flexible="2+"):
    """The controller tells a broker to stop serving replicas, and perhaps to delete them."""

    class UngroupedPartition(Struct):
        """One of the `ungrouped_partitions`."""

        topic_name: str = string()
        partition_index: int = int32()

    class Topic(Struct):
        """One of the `topics`."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    class TopicState(Struct):
        """One of the `topic_states`."""

        class PartitionState(Struct):
            """One of the `partition_states`."""

            partition_index: int = int32()
            leader_epoch: int = int32(default=-1)
            delete_partition: bool = boolean()

        topic_name: str = string()
        partition_states: list[PartitionState] = array(PartitionState)

    controller_id: int = int32()
    is_kraft_controller: bool = boolean("4+", default=False)
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1)
    delete_partitions: bool = boolean("0-2", default=False)
    ungrouped_partitions: list[UngroupedPartition] = array(UngroupedPartition, "0", default=())
    topics: list[Topic] = array(Topic, "1-2", default=())
    topic_states: list[TopicState] = array(TopicState, "3+", default=())


class StopReplicaResponse(Response, request=StopReplicaRequest, versions="0-4", flexible="2+"):
    """Answer to StopReplicaRequest."""

    class PartitionError(Struct):
        """One of the `partition_errors`."""

        topic_name: str = string()
        partition_index: int = int32()
        error_code: int = int16()

    error_code: int = int16()
    partition_errors: list[PartitionError] = array(PartitionError)
