"""Reading record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import UNSET, array, int8, int16, int32, int64, records, string, struct, uuid
from protocol.schema import Part, Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class FetchRequest(Request, key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """Ask a leader for record batches; sent by consumers and by follower replicas."""

    class ReplicaState(Struct):
        """The `replica_state`."""

        replica_id: int = int32(default=-1)
        replica_epoch: int = int64(default=-1)

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition: int = int32()
            current_leader_epoch: int = int32("9+", default=-1)
            fetch_offset: int = int64()
            last_fetched_epoch: int = int32("12+", default=-1)
            log_start_offset: int = int64("5+", default=-1)
            partition_max_bytes: int = int32()
            replica_directory_id: UUID = uuid("17+", default=ZERO_UUID, tag=0)
            high_watermark: int = int64("18+", default=9223372036854775807, tag=1)

        topic: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    class ForgottenTopicsData(Struct):
        """One of the `forgotten_topics_data`."""

        topic: str = string("7-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partitions: list[int] = array(int32)

    cluster_id: str | None = string("12+", default=None, nullable="0+", tag=0)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", default=UNSET, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647)
    isolation_level: int = int8("4+", default=0)
    session_id: int = int32("7+", default=0)
    session_epoch: int = int32("7+", default=-1)
    topics: list[Topic] = array(Topic)
    forgotten_topics_data: list[ForgottenTopicsData] = array(ForgottenTopicsData, "7+", default=())
    rack_id: str = string("11+", default="")


class FetchResponse(Response, request=FetchRequest, versions="0-18", flexible="12+"):
    """Answer to FetchRequest."""

    class Response(Struct):
        """One of the `responses`."""

        class Partition(Struct):
            """One of the `partitions`."""

            class DivergingEpoch(Struct):
                """The `diverging_epoch`."""

                epoch: int = int32(default=-1)
                end_offset: int = int64(default=-1)

            class CurrentLeader(Struct):
                """The `current_leader`."""

                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            class SnapshotId(Struct):
                """The `snapshot_id`."""

                end_offset: int = int64(default=-1)
                epoch: int = int32(default=-1)

            class AbortedTransaction(Struct):
                """One of the `aborted_transactions`."""

                producer_id: int = int64()
                first_offset: int = int64()

            partition_index: int = int32()
            error_code: int = int16()
            high_watermark: int = int64()
            last_stable_offset: int = int64("4+", default=-1)
            log_start_offset: int = int64("5+", default=-1)
            diverging_epoch: DivergingEpoch = struct(DivergingEpoch, "12+", default=UNSET, tag=0)
            current_leader: CurrentLeader = struct(CurrentLeader, "12+", default=UNSET, tag=1)
            snapshot_id: SnapshotId = struct(SnapshotId, "12+", default=UNSET, tag=2)
            aborted_transactions: list[AbortedTransaction] | None = array(
                AbortedTransaction, "4+", default=(), nullable="0+"
            )
            preferred_read_replica: int = int32("11+", default=-1)
            records: Part | None = records(nullable="0+")

        topic: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """One of the `node_endpoints`."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16("7+", default=0)
    session_id: int = int32("7+", default=0)
    responses: list[Response] = array(Response)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", default=(), tag=0)
