"""Reading and deleting committed group offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class OffsetFetchRequest(Request, key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+"):
    """Read the stored positions of a group, or of several (v8)."""

    class Topic(Struct):
        """Partitions of one topic, before v8."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    class Group(Struct):
        """One group and the partitions to read."""

        class Topic(Struct):
            """Partitions of one topic."""

            name: str = string("8-9", default="")
            topic_id: UUID = uuid("10+", default=ZERO_UUID)
            partition_indexes: list[int] = array(int32)

        group_id: str = string()
        member_id: str | None = string("9+", default=None, nullable="0+")
        """For groups of the new protocol (KIP-848); null without a member."""
        member_epoch: int = int32("9+", default=-1)
        """For groups of the new protocol; -1 skips the check."""
        topics: list[Topic] | None = array(Topic, nullable="0+")
        """Null asks for all partitions that have a position."""

    group_id: str = string("0-7", default="")
    topics: list[Topic] | None = array(Topic, "0-7", default=(), nullable="2+")
    """Null asks for all partitions that have a position (v2)."""
    groups: list[Group] = array(Group, "8+", default=())
    require_stable: bool = boolean("7+", default=False)
    """Refuse partitions with positions of an open transaction: UNSTABLE_OFFSET_COMMIT (KIP-447)."""


class OffsetFetchResponse(Response, request=OffsetFetchRequest, versions="0-10", flexible="6+"):
    """Answer to OffsetFetchRequest."""

    class Topic(Struct):
        """Positions in one topic, before v8."""

        class Partition(Struct):
            """A position in one partition."""

            partition_index: int = int32()
            committed_offset: int = int64()
            """-1 if there is none."""
            committed_leader_epoch: int = int32("5+", default=-1)
            """-1 if not known."""
            metadata: str | None = string(nullable="0+")
            """Empty if there is none."""
            error_code: int = int16()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    class Group(Struct):
        """The positions of one group."""

        class Topic(Struct):
            """Positions in one topic."""

            class Partition(Struct):
                """A position in one partition."""

                partition_index: int = int32()
                committed_offset: int = int64()
                """-1 if there is none."""
                committed_leader_epoch: int = int32(default=-1)
                """-1 if not known."""
                metadata: str | None = string(nullable="0+")
                error_code: int = int16()

            name: str = string("8-9", default="")
            topic_id: UUID = uuid("10+", default=ZERO_UUID)
            partitions: list[Partition] = array(Partition)

        group_id: str = string()
        topics: list[Topic] = array(Topic)
        error_code: int = int16(default=0)

    throttle_time_ms: int = int32("3+", default=0)
    topics: list[Topic] = array(Topic, "0-7", default=())
    error_code: int = int16("2-7", default=0)
    """Of the group, in v2 to v7; since v8 each group has its own."""
    groups: list[Group] = array(Group, "8+", default=())


class OffsetDeleteRequest(Request, key=ApiKey.OFFSET_DELETE, versions="0", flexible="none"):
    """Delete stored positions of a group for some partitions (KIP-496)."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One partition."""

            partition_index: int = int32()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class OffsetDeleteResponse(Response, request=OffsetDeleteRequest, versions="0", flexible="none"):
    """Answer to OffsetDeleteRequest."""

    class Topic(Struct):
        """Results for the offsets of one topic."""

        class Partition(Struct):
            """Result for one offset."""

            partition_index: int = int32()
            error_code: int = int16()
            """GROUP_SUBSCRIBED_TO_TOPIC if a member still reads the topic."""

        name: str = string()
        partitions: list[Partition] = array(Partition)

    error_code: int = int16()
    """Of the group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP and the like."""
    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
