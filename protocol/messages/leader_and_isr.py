"""Controller to broker: leaders and followers of partitions (ZooKeeper mode)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class LeaderAndIsrPartitionState(Struct):
    """The controller's decision on one partition."""

    topic_name: str = string("0-1", default="")
    """In v0 and v1; later the topic is named once, in TopicState."""
    partition_index: int = int32()
    controller_epoch: int = int32()
    """Of the controller that decided; older ones are fenced."""
    leader: int = int32()
    """Broker id; -1 for none, -2 while the topic is being deleted."""
    leader_epoch: int = int32()
    """Grows with each new leader; a broker ignores states older than its own."""
    isr: list[int] = array(int32)
    partition_epoch: int = int32()
    """Version of the state's znode, for conditional changes of the ISR."""
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32, "3+", default=())
    """Replicas that a reassignment brings (KIP-455)."""
    removing_replicas: list[int] = array(int32, "3+", default=())
    """Replicas that a reassignment takes away (KIP-455)."""
    is_new: bool = boolean("1+", default=False)
    """True if the replica may be created here, even if a log directory is offline."""
    leader_recovery_state: int = int8("6+", default=0)
    """0 recovered, 1 recovering from an unclean election (KIP-704)."""


class LeaderAndIsrRequest(Request, key=ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+"):
    """Assigns a broker the partitions that it leads or follows."""

    class TopicState(Struct):
        """The partitions of one topic."""

        topic_name: str = string()
        topic_id: UUID = uuid("5+", default=ZERO_UUID)
        partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState)

    class LiveLeader(Struct):
        """A broker that leads some of these partitions."""

        broker_id: int = int32()
        host_name: str = string()
        port: int = int32()

    controller_id: int = int32()
    is_kraft_controller: bool = boolean("7+", default=False)
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1)
    """Of the broker that is meant (KIP-380): STALE_BROKER_EPOCH in an earlier life; -1 skips the
    check.
    """
    type: int = int8("5+", default=0)
    """0 unknown, 1 some partitions, 2 all that the broker has (KIP-516)."""
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(
        LeaderAndIsrPartitionState, "0-1", default=()
    )
    topic_states: list[TopicState] = array(TopicState, "2+", default=())
    live_leaders: list[LiveLeader] = array(LiveLeader)
    """Addresses of the brokers that lead these partitions."""


class LeaderAndIsrPartitionError(Struct):
    """Result for one partition."""

    topic_name: str = string("0-4", default="")
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrResponse(Response, request=LeaderAndIsrRequest, versions="0-7", flexible="4+"):
    """Answer to LeaderAndIsrRequest."""

    class Topic(Struct):
        """Results for the partitions of one topic."""

        topic_id: UUID = uuid()
        partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError)

    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(
        LeaderAndIsrPartitionError, "0-4", default=()
    )
    topics: list[Topic] = array(Topic, "5+", default=())
