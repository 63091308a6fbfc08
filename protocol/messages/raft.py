"""Among controllers: votes, leaders and voters of the metadata quorum (KIP-595, 853, 996)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string, struct, uint16, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class VoteRequest(Request, key=ApiKey.VOTE, versions="0-2", flexible="0+"):
    """A candidate asks a voter for its vote, or with `pre_vote` whether it would give it."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()
            replica_epoch: int = int32()
            """The epoch in which the candidate stands."""
            replica_id: int = int32()
            replica_directory_id: UUID = uuid("1+", default=ZERO_UUID)
            voter_directory_id: UUID = uuid("1+", default=ZERO_UUID)
            last_offset_epoch: int = int32()
            """Epoch of the last record in the candidate's log."""
            last_offset: int = int64()
            """End offset of the candidate's log."""
            pre_vote: bool = boolean("2+", default=False)

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    cluster_id: str | None = string(default=None, nullable="0+")
    voter_id: int = int32("1+", default=-1)
    topics: list[Topic] = array(Topic)


class VoteResponse(Response, request=VoteRequest, versions="0-2", flexible="0+"):
    """Answer to VoteRequest."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            """-1 if none is known."""
            leader_epoch: int = int32()
            vote_granted: bool = boolean()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """Address of a leader."""

        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    error_code: int = int16()
    topics: list[Topic] = array(Topic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", default=(), tag=0)


class BeginQuorumEpochRequest(
    Request, key=ApiKey.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+"
):
    """A new leader tells a voter of itself (KIP-595)."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()
            voter_directory_id: UUID = uuid("1+", default=ZERO_UUID)
            leader_id: int = int32()
            leader_epoch: int = int32()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    class LeaderEndpoint(Struct):
        """Address of one of the leader's listeners."""

        name: str = string("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    cluster_id: str | None = string(default=None, nullable="0+")
    voter_id: int = int32("1+", default=-1)
    topics: list[Topic] = array(Topic)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", default=())


class BeginQuorumEpochResponse(
    Response, request=BeginQuorumEpochRequest, versions="0-1", flexible="1+"
):
    """Answer to BeginQuorumEpochRequest."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            """-1 if none is known."""
            leader_epoch: int = int32()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """Address of a leader."""

        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    error_code: int = int16()
    topics: list[Topic] = array(Topic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", default=(), tag=0)


class EndQuorumEpochRequest(Request, key=ApiKey.END_QUORUM_EPOCH, versions="0-1", flexible="1+"):
    """A leader resigns and names who should succeed it (KIP-595)."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            class PreferredCandidate(Struct):
                """A voter that may succeed."""

                candidate_id: int = int32("1+")
                candidate_directory_id: UUID = uuid("1+")

            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32()
            preferred_successors: list[int] = array(int32, "0", default=())
            """Voter ids, the most up to date first."""
            preferred_candidates: list[PreferredCandidate] = array(
                PreferredCandidate, "1+", default=()
            )
            """The most up to date first."""

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    class LeaderEndpoint(Struct):
        """Address of one of the leader's listeners."""

        name: str = string("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    cluster_id: str | None = string(default=None, nullable="0+")
    topics: list[Topic] = array(Topic)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, "1+", default=())


class EndQuorumEpochResponse(
    Response, request=EndQuorumEpochRequest, versions="0-1", flexible="1+"
):
    """Answer to EndQuorumEpochRequest."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()
            error_code: int = int16()
            leader_id: int = int32()
            """-1 if none is known."""
            leader_epoch: int = int32()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    class NodeEndpoint(Struct):
        """Address of a leader."""

        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    error_code: int = int16()
    topics: list[Topic] = array(Topic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", default=(), tag=0)


class UpdateRaftVoterRequest(Request, key=ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+"):
    """A voter tells the leader its addresses and the versions that it supports (KIP-853)."""

    class Listener(Struct):
        """Address of one listener."""

        name: str = string()
        host: str = string()
        port: int = uint16()

    class KRaftVersionFeature(Struct):
        """Versions of the Raft protocol that the voter supports."""

        min_supported_version: int = int16()
        max_supported_version: int = int16()

    cluster_id: str | None = string(nullable="0+")
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()
    listeners: list[Listener] = array(Listener)
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


class UpdateRaftVoterResponse(
    Response, request=UpdateRaftVoterRequest, versions="0", flexible="0+"
):
    """Answer to UpdateRaftVoterRequest."""

    class CurrentLeader(Struct):
        """The leader that is known."""

        leader_id: int = int32(default=-1)
        """-1 if none is known."""
        leader_epoch: int = int32(default=-1)
        host: str = string()
        port: int = int32()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = struct(CurrentLeader, tag=0)
