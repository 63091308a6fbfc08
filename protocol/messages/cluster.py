"""The cluster, its quorum and voters, taking a broker out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string, uint16, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class DescribeClusterRequest(Request, key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+"):
    """Ask for the cluster id, the controller and the brokers (KIP-700)."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    """1 brokers, 2 controllers (KIP-919); here 2 is MISMATCHED_ENDPOINT_TYPE."""
    include_fenced_brokers: bool = boolean("2+", default=False)


class DescribeClusterResponse(
    Response, request=DescribeClusterRequest, versions="0-2", flexible="0+"
):
    """Answer to DescribeClusterRequest."""

    class Broker(Struct):
        """A broker, at the listener that the request came by."""

        broker_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")
        is_fenced: bool = boolean("2+", default=False)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    """-1 if there is none."""
    brokers: list[Broker] = array(Broker)
    cluster_authorized_operations: int = int32(default=-2147483648)
    """Bits of the AclOperation codes; the least int32 if not asked for."""


class DescribeQuorumRequest(Request, key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+"):
    """Describe the metadata quorum (KRaft)."""

    class Topic(Struct):
        """Partitions of one topic; only `__cluster_metadata` has a quorum."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    topics: list[Topic] = array(Topic)


class DescribeQuorumReplicaState(Struct):
    """Progress of one voter or observer."""

    replica_id: int = int32()
    replica_directory_id: UUID = uuid("2+", default=ZERO_UUID)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1)
    """Time of its last fetch from the leader; -1 if not known."""
    last_caught_up_timestamp: int = int64("1+", default=-1)
    """Time at which it was last caught up; -1 if not known."""


class DescribeQuorumResponse(
    Response, request=DescribeQuorumRequest, versions="0-2", flexible="0+"
):
    """Answer to DescribeQuorumRequest."""

    class Topic(Struct):
        """The quorum of one topic."""

        class Partition(Struct):
            """The quorum of one partition."""

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string("2+", default="", nullable="0+")
            leader_id: int = int32()
            leader_epoch: int = int32()
            high_watermark: int = int64()
            current_voters: list[DescribeQuorumReplicaState] = array(DescribeQuorumReplicaState)
            observers: list[DescribeQuorumReplicaState] = array(DescribeQuorumReplicaState)

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    class Node(Struct):
        """A voter and its addresses."""

        class Listener(Struct):
            """One address of a voter."""

            name: str = string()
            host: str = string()
            port: int = uint16()

        node_id: int = int32()
        listeners: list[Listener] = array(Listener)

    error_code: int = int16()
    error_message: str | None = string("2+", default="", nullable="0+")
    topics: list[Topic] = array(Topic)
    nodes: list[Node] = array(Node, "2+", default=())


class UnregisterBrokerRequest(Request, key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+"):
    """Forget a broker that will not come back (KRaft)."""

    broker_id: int = int32()


class UnregisterBrokerResponse(
    Response, request=UnregisterBrokerRequest, versions="0", flexible="0+"
):
    """Answer to UnregisterBrokerRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")


class UnregisterControllerRequest(
    Request, key=ApiKey.UNREGISTER_CONTROLLER, versions="0", flexible="0+"
):
    """Forget a controller that will not come back (KIP-1312)."""

    controller_id: int = int32()


class UnregisterControllerResponse(
    Response, request=UnregisterControllerRequest, versions="0", flexible="0+"
):
    """Answer to UnregisterControllerRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AddRaftVoterRequest(Request, key=ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+"):
    """Add a voter to the metadata quorum (KIP-853)."""

    class Listener(Struct):
        """One address of it."""

        name: str = string()
        host: str = string()
        port: int = uint16()

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean("1+", default=True)
    """True to respond once the change is committed, false once it is in the log."""


class AddRaftVoterResponse(Response, request=AddRaftVoterRequest, versions="0-1", flexible="0+"):
    """Answer to AddRaftVoterRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class RemoveRaftVoterRequest(Request, key=ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+"):
    """Remove a voter."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()


class RemoveRaftVoterResponse(
    Response, request=RemoveRaftVoterRequest, versions="0", flexible="0+"
):
    """Answer to RemoveRaftVoterRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
