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
        """One of the `topic_data`."""

        class PartitionData(Struct):
            """One of the `partition_data`."""

            index: int = int32()
            records: Part | None = records(nullable="0+")

        name: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partition_data: list[PartitionData] = array(PartitionData)

    transactional_id: str | None = string("3+", default=None, nullable="0+")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicData] = array(TopicData)


class ProduceResponse(Response, request=ProduceRequest, versions="0-13", flexible="9+"):
    """Answer to ProduceRequest."""

    class Response(Struct):
        """One of the `responses`."""

        class PartitionResponse(Struct):
            """One of the `partition_responses`."""

            class RecordError(Struct):
                """One of the `record_errors`."""

                batch_index: int = int32()
                batch_index_error_message: str | None = string(default=None, nullable="0+")

            class CurrentLeader(Struct):
                """The `current_leader`."""

                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            index: int = int32()
            error_code: int = int16()
            base_offset: int = int64()
            log_append_time_ms: int = int64("2+", default=-1)
            log_start_offset: int = int64("5+", default=-1)
            record_errors: list[RecordError] = array(RecordError, "8+", default=())
            error_message: str | None = string("8+", default=None, nullable="0+")
            current_leader: CurrentLeader = struct(CurrentLeader, "10+", default=UNSET, tag=0)

        name: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partition_responses: list[PartitionResponse] = array(PartitionResponse)

    class NodeEndpoint(Struct):
        """One of the `node_endpoints`."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    responses: list[Response] = array(Response)
    throttle_time_ms: int = int32("1+", default=0)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", default=(), tag=0)
