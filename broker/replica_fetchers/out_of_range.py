"""Out-of-range fetches of a follower: the leader's log ends before its offset, or begins after."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from protocol.errors import ApiError, ErrorCode
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.links import Link
    from broker.partitions.partition import Partition

EARLIEST_LOCAL = -4
LATEST = -1
LIST_OFFSETS_VERSION = 9


async def find_range(
    partition: Partition, link: Link, local_id: int, is_followed: Callable[[], bool]
) -> None:
    """Truncate, or start over at the leader's log start; raises LinkError and ApiError.

    Does nothing once the replica follows another leader, or `is_followed()` is false: the leader's
    answer, by topic name, may then concern another topic.
    """
    log = partition.log
    epoch = partition.leader_epoch

    def is_as_it_was() -> bool:
        return partition.leader_epoch == epoch and is_followed()

    end = await _list_offset(partition, LATEST, link, local_id)
    if end < log.log_end_offset:
        if is_as_it_was():
            partition.leader_ends_at(end)
        return
    start = await _list_offset(partition, EARLIEST_LOCAL, link, local_id)
    if is_as_it_was():
        partition.leader_begins_at(start)


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
