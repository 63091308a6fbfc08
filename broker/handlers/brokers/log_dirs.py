"""DescribeLogDirs: the logs in each log directory, including future replicas, and their sizes.

Versions 1 to 5. Null stands for all topics. From v4 with the sizes of the file system. Paths are
absolute, however they were configured: the client may run in another working directory.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster
from broker.requests.encoded_response import encoded_in_slices
from broker.runtime.deferred import in_background
from protocol.acl_types import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from storage.directory.descriptions import describe_directory

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from storage.directory.log_directory import LogDirectory
    from storage.log.log import Log

Result = DescribeLogDirsResponse.Result


@handles(DescribeLogDirsRequest, versions="1-5")
def describe_log_dirs(
    context: Context, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse | Deferred[DescribeLogDirsResponse]:
    """Describe every directory, with those of its logs that the request names.

    Below version 3 the response has no error field: an unauthorized client gets no directories.
    """
    if not is_allowed_on_cluster(context, AclOperation.DESCRIBE):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeLogDirsResponse(error_code=code, results=[])
    wanted = None
    if request.topics is not None:
        wanted = {(t.topic, partition) for t in request.topics for partition in t.partitions}

    async def work() -> DescribeLogDirsResponse:
        logs = context.broker.logs
        results = {one: await _describe(one) for one in logs.directories}
        listing = _Listing(results, wanted)
        async for log in context.broker.slices().each(logs):
            listing.add(log, _describe_log(log))
        async for move in context.broker.slices().each(logs.moves):
            described = _describe_log(move.copy)
            described.offset_lag, described.is_future_key = move.lag, True
            listing.add(move.copy, described)
        response = DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=[*results.values()])
        return await encoded_in_slices(context, response)

    return in_background(context.broker.spawn, work(), "log directories described")


class _Listing:
    """The replicas of an answer, by directory and topic."""

    def __init__(
        self, results: dict[LogDirectory, Result], wanted: set[tuple[str, int]] | None
    ) -> None:
        self._results = results
        self._wanted = wanted
        self._topics: dict[tuple[LogDirectory, str], Result.Topic] = {}

    def add(self, log: Log, described: Result.Topic.Partition) -> None:
        """List a replica, if it is requested and its directory is online."""
        result = self._results.get(log.directory)
        if result is None:  # the log was deleted since
            return
        is_wanted = self._wanted is None or (log.topic, log.partition) in self._wanted
        if result.error_code or not is_wanted:
            return
        topic = self._topics.get((log.directory, log.topic))
        if topic is None:
            topic = Result.Topic(name=log.topic, partitions=[])
            self._topics[log.directory, log.topic] = topic
            result.topics.append(topic)
        topic.partitions.append(described)


async def _describe(directory: LogDirectory) -> Result:
    described = await asyncio.to_thread(describe_directory, directory)
    return Result(
        error_code=described.error_code,
        log_dir=os.path.abspath(described.path),  # noqa: ASYNC240, PTH100  (text, not a file)
        topics=[],
        total_bytes=described.total_bytes,
        usable_bytes=described.usable_bytes,
    )


def _describe_log(log: Log) -> Result.Topic.Partition:
    return Result.Topic.Partition(
        partition_index=log.partition,
        partition_size=log.size_in_bytes,
        offset_lag=max(0, log.log_end_offset - log.high_watermark),
        is_future_key=False,
    )
