"""A follower that asks for what its leader has not: the log there ends before, or begins after."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from protocol.errors import ApiError, ErrorCode
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from broker.partition import Partition
    from broker.replication.links import Link

logger = logging.getLogger(__name__)

EARLIEST_LOCAL = -4
LATEST = -1
LIST_OFFSETS_VERSION = 9


async def find_range(partition: Partition, link: Link, local_id: int) -> None:
    """Truncate, or begin anew where the leader does; raises LinkError and ApiError (RE-13)."""
    log = partition.log
    epoch = partition.leader_epoch
    end = await _list_offset(partition, LATEST, link, local_id)
    if end < log.log_end_offset:
        if partition.leader_epoch == epoch:
            logger.warning(
                "%s-%d: the leader's log ends at %d, before ours at %d: what is more is cut",
                partition.topic,
                partition.index,
                end,
                log.log_end_offset,
            )
            log.truncate_to(end)
        return
    start = await _list_offset(partition, EARLIEST_LOCAL, link, local_id)
    if start > log.log_end_offset and partition.leader_epoch == epoch:
        logger.warning(
            "%s-%d: the leader's log begins at %d, after the end of ours at %d: begun anew",
            partition.topic,
            partition.index,
            start,
            log.log_end_offset,
        )
        log.truncate_fully_and_start_at(start)


async def _list_offset(partition: Partition, timestamp: int, link: Link, local_id: int) -> int:
    request = ListOffsetsRequest(
        replica_id=local_id,
        topics=[
            ListOffsetsRequest.Topic(
                name=partition.topic,
                partitions=[
                    ListOffsetsRequest.Topic.Partition(
                        partition_index=partition.index,
                        current_leader_epoch=partition.leader_epoch,
                        timestamp=timestamp,
                    )
                ],
            )
        ],
    )
    answered = await link.ask(request, LIST_OFFSETS_VERSION)
    (found,) = cast("ListOffsetsResponse", answered).topics[0].partitions
    if found.error_code:
        raise ApiError(ErrorCode(found.error_code), "the leader does not tell its offsets")
    return found.offset
