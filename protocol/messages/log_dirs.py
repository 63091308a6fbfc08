"""Log directories and moving replicas between them."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class AlterReplicaLogDirsRequest(
    Request, key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"
):
    """Move replicas to other log directories of the same broker (KIP-113)."""

    class Dir(Struct):
        """Replicas to move to one directory."""

        class Topic(Struct):
            """Partitions of one topic."""

            name: str = string()
            partitions: list[int] = array(int32)

        path: str = string()
        """Absolute; LOG_DIR_NOT_FOUND if it is none of the broker's."""
        topics: list[Topic] = array(Topic)

    dirs: list[Dir] = array(Dir)


class AlterReplicaLogDirsResponse(
    Response, request=AlterReplicaLogDirsRequest, versions="0-2", flexible="2+"
):
    """Answer to AlterReplicaLogDirsRequest."""

    class Result(Struct):
        """Results for the replicas of one topic."""

        class Partition(Struct):
            """Result for one replica."""

            partition_index: int = int32()
            error_code: int = int16()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)


class DescribeLogDirsRequest(Request, key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+"):
    """List log directories with the sizes of their replicas."""

    class Topic(Struct):
        """Partitions of one topic."""

        topic: str = string()
        partitions: list[int] = array(int32)

    topics: list[Topic] | None = array(Topic, nullable="0+")
    """Null asks for all partitions."""


class DescribeLogDirsResponse(
    Response, request=DescribeLogDirsRequest, versions="0-5", flexible="2+"
):
    """Answer to DescribeLogDirsRequest."""

    class Result(Struct):
        """One log directory."""

        class Topic(Struct):
            """Replicas of one topic."""

            class Partition(Struct):
                """One replica."""

                partition_index: int = int32()
                partition_size: int = int64()
                """Bytes of all its segments."""
                offset_lag: int = int64()
                """Lag behind the high watermark; for a future replica, behind the current one."""
                is_future_key: bool = boolean()
                """True for a future replica, which is being moved here to replace the current
                one."""

            name: str = string()
            partitions: list[Partition] = array(Partition)

        error_code: int = int16()
        """KAFKA_STORAGE_ERROR if the directory is offline."""
        log_dir: str = string()
        topics: list[Topic] = array(Topic)
        total_bytes: int = int64("4+", default=-1)
        """Size of its volume; -1 if not known (KIP-827)."""
        usable_bytes: int = int64("4+", default=-1)
        """Free for us on its volume; -1 if not known (KIP-827)."""
        is_cordoned: bool = boolean("5+", default=False)
        """True if it takes no new replicas (KIP-1066)."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16("3+", default=0)
    """CLUSTER_AUTHORIZATION_FAILED, since v3; before, the list is empty."""
    results: list[Result] = array(Result)
