"""Electing leaders and moving partitions."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class ElectLeadersRequest(Request, key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+"):
    """Elect preferred (or, if need be, unclean) leaders."""

    class TopicPartition(Struct):
        """One of the `topic_partitions`."""

        topic: str = string()
        partitions: list[int] = array(int32)

    election_type: int = int8("1+", default=0)
    topic_partitions: list[TopicPartition] | None = array(TopicPartition, nullable="0+")
    timeout_ms: int = int32(default=60000)


class ElectLeadersResponse(Response, request=ElectLeadersRequest, versions="0-2", flexible="2+"):
    """Answer to ElectLeadersRequest."""

    class ReplicaElectionResult(Struct):
        """One of the `replica_election_results`."""

        class PartitionResult(Struct):
            """One of the `partition_result`."""

            partition_id: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default="", nullable="0+")

        topic: str = string()
        partition_result: list[PartitionResult] = array(PartitionResult)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)


class AlterPartitionReassignmentsRequest(
    Request, key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+"
):
    """Move partitions to other replicas, or cancel such moves."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            replicas: list[int] | None = array(int32, default=None, nullable="0+")

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
        """One of the `responses`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()
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
        """One of the `topics`."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    timeout_ms: int = int32(default=60000)
    topics: list[Topic] | None = array(Topic, default=None, nullable="0+")


class ListPartitionReassignmentsResponse(
    Response, request=ListPartitionReassignmentsRequest, versions="0", flexible="0+"
):
    """Answer to ListPartitionReassignmentsRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            replicas: list[int] = array(int32)
            adding_replicas: list[int] = array(int32)
            removing_replicas: list[int] = array(int32)

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    topics: list[Topic] = array(Topic)
