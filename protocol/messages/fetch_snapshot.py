"""Follower to leader of the metadata log: a piece of a snapshot (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, records, string, struct, uint16, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID

    from protocol.schema import Part


class FetchSnapshotRequest(Request, key=ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+"):
    """A follower of the metadata log asks for a piece of a snapshot (KIP-630)."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            class SnapshotId(Struct):
                """End offset and epoch of a snapshot."""

                end_offset: int = int64()
                epoch: int = int32()

            partition: int = int32()
            current_leader_epoch: int = int32()
            snapshot_id: SnapshotId = struct(SnapshotId)
            position: int = int64()
            """Byte in the snapshot from which to send."""
            replica_directory_id: UUID = uuid("1+", default=ZERO_UUID, tag=0)

        name: str = string()
        partitions: list[Partition] = array(Partition)

    cluster_id: str | None = string(default=None, nullable="0+", tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=0x7FFFFFFF)
    topics: list[Topic] = array(Topic)


class FetchSnapshotResponse(Response, request=FetchSnapshotRequest, versions="0-1", flexible="0+"):
    """Answer to FetchSnapshotRequest."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            class SnapshotId(Struct):
                """End offset and epoch of a snapshot."""

                end_offset: int = int64()
                epoch: int = int32()

            class LeaderIdAndEpoch(Struct):
                """The leader that is known."""

                leader_id: int = int32()
                """-1 if none is known."""
                leader_epoch: int = int32()

            index: int = int32()
            error_code: int = int16()
            snapshot_id: SnapshotId = struct(SnapshotId)
            current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, tag=0)
            size: int = int64()
            """Of the whole snapshot, in bytes."""
            position: int = int64()
            unaligned_records: Part | None = records()
            """Bytes of the snapshot, which may begin and end within a batch."""

        name: str = string()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """Address of a leader."""

        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[Topic] = array(Topic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", default=(), tag=0)
