"""Appending record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import UNSET, array, int16, int32, int64, records, string, struct, uuid
from protocol.schema import Part, Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class ProduceRequest(Request, key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    """Append one record batch per partition."""

    class TopicData(Struct):
        """The batches for one topic."""

        class PartitionData(Struct):
            """The batch for one partition."""

            index: int = int32()
            records: Part | None = records(nullable="0+")
            """One batch of magic 2, since v3 exactly one; zstd since v7."""

        name: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        """In the place of the name since KIP-516; UNKNOWN_TOPIC_ID when no topic has it."""
        partition_data: list[PartitionData] = array(PartitionData)

    transactional_id: str | None = string("3+", default=None, nullable="0+")
    """Null unless the batches are part of a transaction."""
    acks: int = int16()
    """Replicas that must have the records before the response: 0 none (and no response), 1 the
    leader, -1 all in-sync replicas; other values fail with INVALID_REQUIRED_ACKS."""
    timeout_ms: int = int32()
    """Longest wait for acks=-1; then the partitions fail with REQUEST_TIMED_OUT."""
    topic_data: list[TopicData] = array(TopicData)


class ProduceResponse(Response, request=ProduceRequest, versions="0-13", flexible="9+"):
    """Answer to ProduceRequest; there is none to acks=0."""

    class Response(Struct):
        """Results for the batches of one topic."""

        class PartitionResponse(Struct):
            """Result for the batch of one partition."""

            class RecordError(Struct):
                """Reason for refusing one record."""

                batch_index: int = int32()
                """Place of the record in its batch, from 0."""
                batch_index_error_message: str | None = string(default=None, nullable="0+")

            class CurrentLeader(Struct):
                """Current leader of the partition; -1 if not given."""

                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            index: int = int32()
            error_code: int = int16()
            base_offset: int = int64()
            """Offset that the first record got; -1 if the batch was refused."""
            log_append_time_ms: int = int64("2+", default=-1)
            """Time that the broker stamped on the records; -1 if it kept the producer's."""
            log_start_offset: int = int64("5+", default=-1)
            """Log start offset of the partition; -1 if the batch was refused."""
            record_errors: list[RecordError] = array(RecordError, "8+", default=())
            """Records for which the batch was refused (KIP-467)."""
            error_message: str | None = string("8+", default=None, nullable="0+")
            current_leader: CurrentLeader = struct(CurrentLeader, "10+", default=UNSET, tag=0)
            """Filled with NOT_LEADER_OR_FOLLOWER, to spare the client a Metadata request (KIP-951).
            """

        name: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partition_responses: list[PartitionResponse] = array(PartitionResponse)

    class NodeEndpoint(Struct):
        """Address of a leader named above (KIP-951)."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    responses: list[Response] = array(Response)
    throttle_time_ms: int = int32("1+", default=0)
    """Time for which the client should pause because of its quota."""
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", default=(), tag=0)
