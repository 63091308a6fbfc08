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
        """The fetching broker, and the epoch of its registration."""

        replica_id: int = int32(default=-1)
        """-1 for consumers."""
        replica_epoch: int = int64(default=-1)
        """Epoch of the broker's registration; -1 if not known."""

    class Topic(Struct):
        """The partitions of one topic to read."""

        class Partition(Struct):
            """Fetch position in one partition, and size limit."""

            partition: int = int32()
            current_leader_epoch: int = int32("9+", default=-1)
            """Leader epoch that the reader knows of (KIP-320): FENCED_LEADER_EPOCH if it is older
            than the leader's, UNKNOWN_LEADER_EPOCH if newer; -1 skips the check.
            """
            fetch_offset: int = int64()
            last_fetched_epoch: int = int32("12+", default=-1)
            """Epoch of the reader's last record, which lets the leader detect a diverging log
            (KIP-595); -1 for none.
            """
            log_start_offset: int = int64("5+", default=-1)
            """A follower's own log start; -1 from consumers."""
            partition_max_bytes: int = int32()
            """Exceeded only by a batch that is the first of the answer."""
            replica_directory_id: UUID = uuid("17+", default=ZERO_UUID, tag=0)
            """Log directory of the replica that fetches (KRaft, KIP-853)."""
            high_watermark: int = int64("18+", default=9223372036854775807, tag=1)
            """The follower's high watermark, so that it learns of a change at once (KIP-1166)."""

        topic: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    class ForgottenTopicsData(Struct):
        """Partitions that leave the session."""

        topic: str = string("7-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partitions: list[int] = array(int32)

    cluster_id: str | None = string("12+", default=None, nullable="0+", tag=0)
    """Checked by KRaft's metadata quorum only."""
    replica_id: int = int32("0-14", default=-1)
    """Broker id of a follower; -1 for consumers. Since v15 in `replica_state`."""
    replica_state: ReplicaState = struct(ReplicaState, "15+", default=UNSET, tag=1)
    """The follower that asks (KIP-903); left out by consumers."""
    max_wait_ms: int = int32()
    """Longest wait for `min_bytes` of data."""
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647)
    """Limit of the whole response. The first batch is sent even if it is larger (KIP-74)."""
    isolation_level: int = int8("4+", default=0)
    """0 reads to the high watermark, 1 to the last stable offset (committed only)."""
    session_id: int = int32("7+", default=0)
    """Fetch session that this request continues (KIP-227); 0 for none."""
    session_epoch: int = int32("7+", default=-1)
    """Counts the requests of a session: 0 opens one, -1 goes without and closes it."""
    topics: list[Topic] = array(Topic)
    """In a session: only partitions that are new or have changed since the last request."""
    forgotten_topics_data: list[ForgottenTopicsData] = array(ForgottenTopicsData, "7+", default=())
    rack_id: str = string("11+", default="")
    """Rack of the consumer, for reading from the nearest replica (KIP-392)."""


class FetchResponse(Response, request=FetchRequest, versions="0-18", flexible="12+"):
    """Answer to FetchRequest."""

    class Response(Struct):
        """Records of one topic."""

        class Partition(Struct):
            """Records of one partition."""

            class DivergingEpoch(Struct):
                """End of the agreement of the follower's log with the leader's (KIP-595)."""

                epoch: int = int32(default=-1)
                """Greatest epoch of the leader that is not above the follower's; -1 if the logs
                agree.
                """
                end_offset: int = int64(default=-1)
                """End offset of that epoch on the leader."""

            class CurrentLeader(Struct):
                """Current leader of the partition; -1 if not given (KIP-951)."""

                leader_id: int = int32(default=-1)
                leader_epoch: int = int32(default=-1)

            class SnapshotId(Struct):
                """Snapshot to fetch first (KRaft); -1 for none."""

                end_offset: int = int64(default=-1)
                epoch: int = int32(default=-1)

            class AbortedTransaction(Struct):
                """A transaction whose records are to be skipped."""

                producer_id: int = int64()
                first_offset: int = int64()
                """Records of the producer from here up to its abort marker are void."""

            partition_index: int = int32()
            error_code: int = int16()
            high_watermark: int = int64()
            """-1 with an error."""
            last_stable_offset: int = int64("4+", default=-1)
            """No open transaction has records before it; -1 if not known."""
            log_start_offset: int = int64("5+", default=-1)
            diverging_epoch: DivergingEpoch = struct(DivergingEpoch, "12+", default=UNSET, tag=0)
            current_leader: CurrentLeader = struct(CurrentLeader, "12+", default=UNSET, tag=1)
            snapshot_id: SnapshotId = struct(SnapshotId, "12+", default=UNSET, tag=2)
            aborted_transactions: list[AbortedTransaction] | None = array(
                AbortedTransaction, "4+", default=(), nullable="0+"
            )
            """Null unless `isolation_level` is 1."""
            preferred_read_replica: int = int32("11+", default=-1)
            """Replica that the consumer should read from instead (KIP-392); -1 for none."""
            records: Part | None = records(nullable="0+")

        topic: str = string("0-12", default="")
        topic_id: UUID = uuid("13+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """Address of a leader named above (KIP-951)."""

        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16("7+", default=0)
    """Of the session: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH and the like."""
    session_id: int = int32("7+", default=0)
    """Session to continue with; 0 if none was opened."""
    responses: list[Response] = array(Response)
    """In a session: only partitions with records, errors or other news."""
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", default=(), tag=0)
