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
    """Read a group's stored positions."""

    class Topic(Struct):
        """One of the `topics`."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    class Group(Struct):
        """One of the `groups`."""

        class Topic(Struct):
            """One of the `topics`."""

            name: str = string("8-9", default="")
            topic_id: UUID = uuid("10+", default=ZERO_UUID)
            partition_indexes: list[int] = array(int32)

        group_id: str = string()
        member_id: str | None = string("9+", default=None, nullable="0+")
        member_epoch: int = int32("9+", default=-1)
        topics: list[Topic] | None = array(Topic, nullable="0+")

    group_id: str = string("0-7", default="")
    topics: list[Topic] | None = array(Topic, "0-7", default=(), nullable="2+")
    groups: list[Group] = array(Group, "8+", default=())
    require_stable: bool = boolean("7+", default=False)


class OffsetFetchResponse(Response, request=OffsetFetchRequest, versions="0-10", flexible="6+"):
    """Answer to OffsetFetchRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32("5+", default=-1)
            metadata: str | None = string(nullable="0+")
            error_code: int = int16()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    class Group(Struct):
        """One of the `groups`."""

        class Topic(Struct):
            """One of the `topics`."""

            class Partition(Struct):
                """One of the `partitions`."""

                partition_index: int = int32()
                committed_offset: int = int64()
                committed_leader_epoch: int = int32(default=-1)
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
    groups: list[Group] = array(Group, "8+", default=())


class OffsetDeleteRequest(Request, key=ApiKey.OFFSET_DELETE, versions="0", flexible="none"):
    """Delete stored positions of a group for some partitions."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class OffsetDeleteResponse(Response, request=OffsetDeleteRequest, versions="0", flexible="none"):
    """Answer to OffsetDeleteRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    error_code: int = int16()
    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
