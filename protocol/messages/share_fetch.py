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
        """Partitions of one topic."""

        class Partition(Struct):
            """A partition to read, with the acknowledgements of earlier records."""

            class AcknowledgementBatch(Struct):
                """Acknowledgement of a range of records."""

                first_offset: int = int64()
                last_offset: int = int64()
                acknowledge_types: list[int] = array(int8)
                """0 gap, 1 accept, 2 release, 3 reject, 4 renew: one for all, or one per record."""

            partition_index: int = int32()
            partition_max_bytes: int = int32("0", default=0)
            acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    class ForgottenTopicsData(Struct):
        """Partitions that leave the session."""

        topic_id: UUID = uuid()
        partitions: list[int] = array(int32)

    group_id: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    """0 opens a session, -1 closes it, else counts its requests."""
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32("1+", default=0)
    """Soft limit: batches are not split for it."""
    batch_size: int = int32("1+", default=0)
    share_acquire_mode: int = int8("2+", default=0)
    """0 optimises for batches, 1 keeps to the record limit."""
    is_renew_ack: bool = boolean("2+", default=False)
    topics: list[Topic] = array(Topic)
    forgotten_topics_data: list[ForgottenTopicsData] = array(ForgottenTopicsData)


class ShareFetchResponse(Response, request=ShareFetchRequest, versions="0-2", flexible="0+"):
    """Answer to ShareFetchRequest."""

    class Response(Struct):
        """Records of one topic."""

        class Partition(Struct):
            """Records of one partition."""

            class CurrentLeader(Struct):
                """Current leader of the partition."""

                leader_id: int = int32()
                leader_epoch: int = int32()

            class AcquiredRecord(Struct):
                """A range of records that the member now holds."""

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
        """Address of a leader named above."""

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
        """Partitions of one topic."""

        class Partition(Struct):
            """Acknowledgements of records of one partition."""

            class AcknowledgementBatch(Struct):
                """Acknowledgement of a range of records."""

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
        """Results of the acknowledgements for one topic."""

        class Partition(Struct):
            """Result of those for one partition."""

            class CurrentLeader(Struct):
                """Current leader of the partition."""

                leader_id: int = int32()
                leader_epoch: int = int32()

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            current_leader: CurrentLeader = struct(CurrentLeader)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """Address of a leader named above."""

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
