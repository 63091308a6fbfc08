"""Electing leaders and moving partitions."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class ElectLeadersRequest(Request, key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+"):
    """Elect preferred (or, if need be, unclean) leaders (KIP-460)."""

    class TopicPartition(Struct):
        """Partitions of one topic."""

        topic: str = string()
        partitions: list[int] = array(int32)

    election_type: int = int8("1+", default=0)
    """0 preferred, 1 unclean."""
    topic_partitions: list[TopicPartition] | None = array(TopicPartition, nullable="0+")
    """Null asks for all partitions."""
    timeout_ms: int = int32(default=60000)


class ElectLeadersResponse(Response, request=ElectLeadersRequest, versions="0-2", flexible="2+"):
    """Answer to ElectLeadersRequest."""

    class ReplicaElectionResult(Struct):
        """Results of the elections of one topic."""

        class PartitionResult(Struct):
            """Result of one election."""

            partition_id: int = int32()
            error_code: int = int16()
            """ELECTION_NOT_NEEDED if the leader is the wanted one already."""
            error_message: str | None = string(default="", nullable="0+")

        topic: str = string()
        partition_result: list[PartitionResult] = array(PartitionResult)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)


class AlterPartitionReassignmentsRequest(
    Request, key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+"
):
    """Move partitions to other replicas, or cancel moves (KIP-455)."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """Target replicas of one partition."""

            partition_index: int = int32()
            replicas: list[int] | None = array(int32, default=None, nullable="0+")
            """Null cancels the move that is under way."""

        name: str = string()
        partitions: list[Partition] = array(Partition)

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[Topic] = array(Topic)


class AlterPartitionReassignmentsResponse(
    Response, request=AlterPartitionReassignmentsRequest, versions="0-1", flexible="0+"
):
    """Answer to AlterPartitionReassignmentsRequest."""

    class Response(Struct):
        """Results for the partitions of one topic."""

        class Partition(Struct):
            """Result for one partition."""

            partition_index: int = int32()
            error_code: int = int16()
            """NO_REASSIGNMENT_IN_PROGRESS if there is nothing to cancel."""
            error_message: str | None = string(default="", nullable="0+")

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    responses: list[Response] = array(Response)


class ListPartitionReassignmentsRequest(
    Request, key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """List the moves that are under way."""

    class Topic(Struct):
        """Partitions of one topic."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    timeout_ms: int = int32(default=60000)
    topics: list[Topic] | None = array(Topic, default=None, nullable="0+")
    """Null asks for all partitions."""


class ListPartitionReassignmentsResponse(
    Response, request=ListPartitionReassignmentsRequest, versions="0", flexible="0+"
):
    """Answer to ListPartitionReassignmentsRequest."""

    class Topic(Struct):
        """Moves in one topic."""

        class Partition(Struct):
            """The move of one partition."""

            partition_index: int = int32()
            replicas: list[int] = array(int32)
            """All, those that come and those that go included."""
            adding_replicas: list[int] = array(int32)
            removing_replicas: list[int] = array(int32)

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    topics: list[Topic] = array(Topic)
