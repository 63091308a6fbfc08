"""Keys and values of `__consumer_offsets`: classic groups and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, blob, int32, int64, string, uuid
from protocol.schema import Coded, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class OffsetCommitKey(Coded, versions="0", flexible="none", key_type=1):
    """Names one position: group, topic and partition."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Coded, versions="0-4", flexible="4+"):
    """A stored position."""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1)
    """Epoch of the last record that was read; -1 if not known."""
    metadata: str = string()
    commit_timestamp: int = int64()
    """Time of the commit, in milliseconds; retention counts from here."""
    expire_timestamp: int = int64("1", default=-1)
    """In v1, for commits with a retention of their own; -1 for none."""
    topic_id: UUID = uuid("4+", default=ZERO_UUID, tag=0)


class LegacyOffsetCommitKey(Coded, versions="0", flexible="none", key_type=0):
    """The same under the number that old brokers used."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class LegacyOffsetCommitValue(Coded, versions="0", flexible="none"):
    """A stored position under a legacy key; the bytes are those of OffsetCommitValue v0."""

    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()


class GroupMetadataKey(Coded, versions="0", flexible="none", key_type=2):
    """Names a classic group."""

    group: str = string()


class MemberMetadata(Struct):
    """A member of a classic group."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1)
    session_timeout: int = int32()
    subscription: bytes = blob()
    """Its metadata for the strategy that was chosen."""
    assignment: bytes = blob()


class GroupMetadataValue(Coded, versions="0-4", flexible="4+"):
    """A classic group at the end of a rebalance: generation, members, assignments."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    """Chosen strategy; null while there are no members."""
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1)
    """Time of the group's last state change; retention of an empty group counts from here."""
    members: list[MemberMetadata] = array(MemberMetadata)
