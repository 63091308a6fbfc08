"""Controller to broker: stop or delete replicas (ZooKeeper mode)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class StopReplicaRequest(Request, key=ApiKey.STOP_REPLICA, versions="0-4", flexible="2+"):
    """Orders a broker to stop, and optionally to delete, replicas."""

    class UngroupedPartition(Struct):
        """A replica to stop, in v0."""

        topic_name: str = string()
        partition_index: int = int32()

    class Topic(Struct):
        """Replicas of one topic to stop, in v1 and v2."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    class TopicState(Struct):
        """Replicas of one topic to stop (KIP-570)."""

        class PartitionState(Struct):
            """A replica to stop."""

            partition_index: int = int32()
            leader_epoch: int = int32(default=-1)
            """-1 if not known, -2 while the topic is being deleted: both pass the check."""
            delete_partition: bool = boolean()
            """True to delete its files."""

        topic_name: str = string()
        partition_states: list[PartitionState] = array(PartitionState)

    controller_id: int = int32()
    is_kraft_controller: bool = boolean("4+", default=False)
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1)
    """Of the broker that is meant (KIP-380); -1 skips the check."""
    delete_partitions: bool = boolean("0-2", default=False)
    """True to delete all of them (before v3, which has the flag per replica)."""
    ungrouped_partitions: list[UngroupedPartition] = array(UngroupedPartition, "0", default=())
    topics: list[Topic] = array(Topic, "1-2", default=())
    topic_states: list[TopicState] = array(TopicState, "3+", default=())


class StopReplicaResponse(Response, request=StopReplicaRequest, versions="0-4", flexible="2+"):
    """Answer to StopReplicaRequest."""

    class PartitionError(Struct):
        """Result for one replica."""

        topic_name: str = string()
        partition_index: int = int32()
        error_code: int = int16()

    error_code: int = int16()
    partition_errors: list[PartitionError] = array(PartitionError)
