"""Requests of an observer to the quorum, and the one partition in their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from controller.raft.effects import Election
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from protocol.uuids import METADATA_TOPIC_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from controller.raft.destinations import Address
    from controller.raft.log_view import LogView
    from protocol.metadata_log.snapshots import SnapshotId

TOPIC: Final = "__cluster_metadata"
PARTITION: Final = 0

FetchedPartition = FetchResponse.Response.Partition
SnapshotPart = FetchSnapshotResponse.Topic.Partition

_Wanted = FetchRequest.Topic.Partition
_WantedPart = FetchSnapshotRequest.Topic.Partition


class Replica(NamedTuple):
    """Names one replica of the metadata log."""

    cluster_id: str
    node_id: int
    directory_id: UUID
    """Of the directory that holds the log (KIP-853)."""


class RequestLimits(NamedTuple):
    """Sizes of answers, and the time for which the leader may wait for more."""

    max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    snapshot_max_bytes: int = 1 << 20


def fetch_request(
    replica: Replica, epoch: int, log: LogView, limits: RequestLimits
) -> FetchRequest:
    """Ask for what comes after the end of the log (KIP-595).

    With the high watermark that is known here, the answer comes at once if it has moved (KIP-1166).
    """
    wanted = _Wanted(
        partition=PARTITION,
        current_leader_epoch=epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        partition_max_bytes=limits.fetch_max_bytes,
        replica_directory_id=replica.directory_id,
        high_watermark=log.high_watermark,
    )
    return FetchRequest(
        cluster_id=replica.cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=replica.node_id),
        max_wait_ms=limits.max_wait_ms,
        min_bytes=0,
        max_bytes=limits.fetch_max_bytes,
        topics=[FetchRequest.Topic(topic_id=METADATA_TOPIC_UUID, partitions=[wanted])],
    )


def snapshot_request(
    replica: Replica, epoch: int, part: tuple[SnapshotId, int], limits: RequestLimits
) -> FetchSnapshotRequest:
    """Ask for what comes after the first bytes of a snapshot: its id, and how many (KIP-630)."""
    snapshot_id, position = part
    wanted = _WantedPart(
        partition=PARTITION,
        current_leader_epoch=epoch,
        snapshot_id=_WantedPart.SnapshotId(
            end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
        ),
        position=position,
        replica_directory_id=replica.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=replica.cluster_id,
        replica_id=replica.node_id,
        max_bytes=limits.snapshot_max_bytes,
        topics=[FetchSnapshotRequest.Topic(name=TOPIC, partitions=[wanted])],
    )


def fetched_partition(response: FetchResponse) -> FetchedPartition | None:
    """The partition of the metadata log in an answer, unless it is about another one."""
    match response.responses:
        case [topic] if topic.topic_id == METADATA_TOPIC_UUID:
            match topic.partitions:
                case [partition] if partition.partition_index == PARTITION:
                    return partition
    return None


def snapshot_part(response: FetchSnapshotResponse) -> SnapshotPart | None:
    """The piece of a snapshot of the metadata log in an answer, unless it is about another one."""
    match response.topics:
        case [topic] if topic.name == TOPIC:
            match topic.partitions:
                case [partition] if partition.index == PARTITION:
                    return partition
    return None


class Named(NamedTuple):
    """The election that a server knows of, and where its leader is."""

    election: Election
    address: Address | None


class _Leader(Protocol):
    @property
    def leader_id(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...


class _Endpoint(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def named_leader(
    leader: _Leader, endpoints: Iterable[_Endpoint], voters: Mapping[int, Address]
) -> Named:
    """The leader in an answer; if that does not say where it is, `voters` may."""
    election = Election(leader.leader_epoch, leader.leader_id)
    for endpoint in endpoints:
        if endpoint.node_id == leader.leader_id:
            return Named(election, (endpoint.host, endpoint.port))
    return Named(election, voters.get(leader.leader_id))
