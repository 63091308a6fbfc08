"""AlterReplicaLogDirs: choose the log directory of a replica on this broker (KIP-113).

Versions 1 and 2. A replica moves in the background (`broker.maintenance.log_mover`), after the
answer; one that lies in the directory stays, and ends any move elsewhere. One that does not exist
yet will be created there. Of several directories for one replica the last counts, as in Apache
Kafka: to begin a move makes files.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster
from broker.requests.steps import in_steps
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from storage.directory.log_directory import LogDirectory
    from storage.log.log import Log

logger = logging.getLogger(__name__)

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

Result = AlterReplicaLogDirsResponse.Result


@handles(AlterReplicaLogDirsRequest, versions="1-2")
@in_steps
def alter_replica_log_dirs(
    context: Context, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    """Answer for each replica, by topic."""
    directories = {
        os.path.abspath(directory.path): directory  # noqa: PTH100  (text, not a file)
        for directory in context.broker.logs.directories
    }
    may = is_allowed_on_cluster(context, AclOperation.ALTER)
    chosen: dict[tuple[str, int], LogDirectory | None] = {}
    for wanted in request.dirs:
        directory = directories.get(wanted.path)
        yield
        for topic in wanted.topics:
            yield
            for index in topic.partitions:
                chosen[topic.name, index] = directory
                yield
    topics: dict[str, list[Result.Partition]] = {}
    for (name, index), directory in chosen.items():
        code = _place(context, directory, name, index) if may else REFUSED
        answer = Result.Partition(partition_index=index, error_code=code)
        topics.setdefault(name, []).append(answer)
        yield
    return AlterReplicaLogDirsResponse(
        results=[Result(topic_name=name, partitions=parts) for name, parts in topics.items()]
    )


def _place(context: Context, directory: LogDirectory | None, topic: str, index: int) -> ErrorCode:
    """Have a replica be in the directory; returns the error code of the answer."""
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    broker = context.broker
    log = broker.logs.get(topic, index)
    if log is not None:
        return _move(context, log, directory)
    if broker.metadata.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.logs.want(topic, index, directory)
    return ErrorCode.REPLICA_NOT_AVAILABLE


def _move(context: Context, log: Log, directory: LogDirectory) -> ErrorCode:
    if log.directory.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        context.broker.logs.move(log, directory, context.broker.clock.now_ms())
    except ApiError as error:
        logger.warning("%s not moved: %s", log.name, error.message)
        return error.code
    return ErrorCode.NONE
