"""Log directories and moving replicas between them."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class AlterReplicaLogDirsRequest(
    Request, key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"
):
    """Move replicas to other log directories of the same broker."""

    class Dir(Struct):
        """One of the `dirs`."""

        class Topic(Struct):
            """One of the `topics`."""

            name: str = string()
            partitions: list[int] = array(int32)

        path: str = string()
        topics: list[Topic] = array(Topic)

    dirs: list[Dir] = array(Dir)


class AlterReplicaLogDirsResponse(
    Response, request=AlterReplicaLogDirsRequest, versions="0-2", flexible="2+"
):
    """Answer to AlterReplicaLogDirsRequest."""

    class Result(Struct):
        """One of the `results`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)


class DescribeLogDirsRequest(Request, key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+"):
    """List log directories with the sizes of what is in them."""

    class Topic(Struct):
        """One of the `topics`."""

        topic: str = string()
        partitions: list[int] = array(int32)

    topics: list[Topic] | None = array(Topic, nullable="0+")


class DescribeLogDirsResponse(
    Response, request=DescribeLogDirsRequest, versions="0-5", flexible="2+"
):
    """Answer to DescribeLogDirsRequest."""

    class Result(Struct):
        """One of the `results`."""

        class Topic(Struct):
            """One of the `topics`."""

            class Partition(Struct):
                """One of the `partitions`."""

                partition_index: int = int32()
                partition_size: int = int64()
                offset_lag: int = int64()
                is_future_key: bool = boolean()

            name: str = string()
            partitions: list[Partition] = array(Partition)

        error_code: int = int16()
        log_dir: str = string()
        topics: list[Topic] = array(Topic)
        total_bytes: int = int64("4+", default=-1)
        usable_bytes: int = int64("4+", default=-1)
        is_cordoned: bool = boolean("5+", default=False)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16("3+", default=0)
    results: list[Result] = array(Result)
