"""DescribeLogDirs: what lies in which log directory.

Versions 1 to 5. Null asks for all topics. From v4 with the sizes of the file system. Paths are
absolute, however they were configured: who asks was not started where the broker was.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker.routing import handles
from protocol.errors import ErrorCode
from protocol.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

if TYPE_CHECKING:
    from broker.context import Context
    from storage.descriptions import DirectoryDescription

Result = DescribeLogDirsResponse.Result


@handles(DescribeLogDirsRequest, versions="1-5")
def describe_log_dirs(context: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe every directory, with those of its logs that were asked for."""
    wanted = None
    if request.topics is not None:
        wanted = {(t.topic, partition) for t in request.topics for partition in t.partitions}
    return DescribeLogDirsResponse(
        error_code=ErrorCode.NONE,
        results=[_describe(directory, wanted) for directory in context.broker.logs.describe()],
    )


def _describe(directory: DirectoryDescription, wanted: set[tuple[str, int]] | None) -> Result:
    topics: dict[str, list[Result.Topic.Partition]] = {}
    for log in directory.logs:
        if wanted is None or (log.topic, log.partition) in wanted:
            topics.setdefault(log.topic, []).append(
                Result.Topic.Partition(
                    partition_index=log.partition,
                    partition_size=log.size,
                    offset_lag=log.offset_lag,
                    is_future_key=False,
                )
            )
    return Result(
        error_code=directory.error_code,
        log_dir=os.path.abspath(directory.path),  # noqa: PTH100  (text, not a file)
        topics=[Result.Topic(name=name, partitions=parts) for name, parts in topics.items()],
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
