"""Share groups: fetching and acknowledging (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, records, string, struct, uuid
from protocol.schema import Part, Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


class ShareFetchRequest(Request, key=ApiKey.SHARE_FETCH, versions="0-2", flexible="0+"):
    """Acquire records of share partitions, acknowledging earlier ones."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            class AcknowledgementBatch(Struct):
                """One of the `acknowledgement_batches`."""

                first_offset: int = int64()
                last_offset: int = int64()
                acknowledge_types: list[int] = array(int8)

            partition_index: int = int32()
            partition_max_bytes: int = int32("0", default=0)
            acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    class ForgottenTopicsData(Struct):
        """One of the `forgotten_topics_data`."""

        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32("1+", default=0)
    batch_size: int = int32("1+", default=0)
    share_acquire_mode: int = int8("2+", default=0)
    is_renew_ack: bool = boolean("2+", default=False)
    topics: list[Topic] = array(Topic)
    forgotten_topics_data: list[ForgottenTopicsData] = array(ForgottenTopicsData)


class ShareFetchResponse(Response, request=ShareFetchRequest, versions="0-2", flexible="0+"):
    """Answer to ShareFetchRequest."""

    class Response(Struct):
        """One of the `responses`."""

        class Partition(Struct):
            """One of the `partitions`."""

            class CurrentLeader(Struct):
                """The `current_leader`."""

                leader_id: int = int32()
                leader_epoch: int = int32()

            class AcquiredRecord(Struct):
                """One of the `acquired_records`."""

                first_offset: int = int64()
                last_offset: int = int64()
                delivery_count: int = int16()

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            acknowledge_error_code: int = int16()
            acknowledge_error_message: str | None = string(default=None, nullable="0+")
            current_leader: CurrentLeader = struct(CurrentLeader)
            records: Part | None = records(nullable="0")
            acquired_records: list[AcquiredRecord] = array(AcquiredRecord)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """One of the `node_endpoints`."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32("1+", default=0)
    responses: list[Response] = array(Response)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)


class ShareAcknowledgeRequest(Request, key=ApiKey.SHARE_ACKNOWLEDGE, versions="0-2", flexible="0+"):
    """Acknowledge records without fetching more."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            class AcknowledgementBatch(Struct):
                """One of the `acknowledgement_batches`."""

                first_offset: int = int64()
                last_offset: int = int64()
                acknowledge_types: list[int] = array(int8)

            partition_index: int = int32()
            acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean("2+", default=False)
    topics: list[Topic] = array(Topic)


class ShareAcknowledgeResponse(
    Response, request=ShareAcknowledgeRequest, versions="0-2", flexible="0+"
):
    """Answer to ShareAcknowledgeRequest."""

    class Response(Struct):
        """One of the `responses`."""

        class Partition(Struct):
            """One of the `partitions`."""

            class CurrentLeader(Struct):
                """The `current_leader`."""

                leader_id: int = int32()
                leader_epoch: int = int32()

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            current_leader: CurrentLeader = struct(CurrentLeader)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """One of the `node_endpoints`."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = int32("2+", default=0)
    responses: list[Response] = array(Response)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
