"""Controller to broker: who leads and follows (ZooKeeper mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class LeaderAndIsrPartitionState(Struct):
    """Part of LeaderAndIsrRequest."""

    topic_name: str = string("0-1", default="")
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    partition_epoch: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32, "3+", default=())
    removing_replicas: list[int] = array(int32, "3+", default=())
    is_new: bool = boolean("1+", default=False)
    leader_recovery_state: int = int8("6+", default=0)


class LeaderAndIsrRequest(Request, key=ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+"):
    """The controller tells a broker which partitions it leads or follows."""

    class TopicState(Struct):
        """One of the `topic_states`."""

        topic_name: str = string()
        topic_id: UUID = uuid("5+", default=ZERO_UUID)
        partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)

    class LiveLeader(Struct):
        """One of the `live_leaders`."""

        broker_id: int = int32()
        host_name: str = string()
        port: int = int32()

    controller_id: int = int32()
    is_kraft_controller: bool = boolean("7+", default=False)
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1)
    type: int = int8("5+", default=0)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(
        LeaderAndIsrPartitionState, "0-1", default=()
    )
    topic_states: list[TopicState] = array(TopicState, "2+", default=())
    live_leaders: list[LiveLeader] = array(LiveLeader)


class LeaderAndIsrPartitionError(Struct):
    """Part of LeaderAndIsrResponse."""

    topic_name: str = string("0-4", default="")
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrResponse(Response, request=LeaderAndIsrRequest, versions="0-7", flexible="4+"):
    """Answer to LeaderAndIsrRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        topic_id: UUID = uuid()
        partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)

    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(
        LeaderAndIsrPartitionError, "0-4", default=()
    )
    topics: list[Topic] = array(Topic, "5+", default=())
