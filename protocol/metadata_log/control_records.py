"""Control records of `__cluster_metadata` and of its snapshots (KIP-595, KIP-630, KIP-853).

Their keys are those of other control records, an int16 version and an int16 type; the version of a
value is its first field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, int16, int32, int64, string, struct, uint16, uuid
from protocol.schema import Message, Struct

if TYPE_CHECKING:
    from uuid import UUID


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """The first record of each leader's epoch: control type 2."""

    class Voter(Struct):
        """A controller that votes."""

        voter_id: int = int32()
        voter_directory_id: UUID = uuid("1+")

    version: int = int16()
    leader_id: int = int32()
    voters: list[Voter] = array(Voter)
    granting_voters: list[Voter] = array(Voter)
    """Voters that gave the leader their vote."""


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """The first record of a snapshot: control type 3."""

    version: int = int16()
    last_contained_log_timestamp: int = int64()
    """Time, in ms since 1970, at which the last record in the snapshot was appended to the log."""


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """The last record of a snapshot: control type 4. A snapshot without it is incomplete."""

    version: int = int16()


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """The version of the Raft protocol in force: control type 5."""

    version: int = int16()
    kraft_version: int = int16()
    """1 has voters that can change (KIP-853)."""


class VotersRecord(Message, versions="0", flexible="0+"):
    """The voters in force: control type 6."""

    class Voter(Struct):
        """A controller that votes."""

        class Endpoint(Struct):
            """Address of one of its listeners."""

            name: str = string()
            host: str = string()
            port: int = uint16()

        class KRaftVersionFeature(Struct):
            """Versions of the Raft protocol that it supports."""

            min_supported_version: int = int16()
            max_supported_version: int = int16()

        voter_id: int = int32()
        voter_directory_id: UUID = uuid()
        endpoints: list[Endpoint] = array(Endpoint)
        kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)

    version: int = int16()
    voters: list[Voter] = array(Voter)
