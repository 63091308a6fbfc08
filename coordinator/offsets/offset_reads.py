"""OffsetFetch: a partition without a committed offset answers -1, not an error.

A request for stable offsets (KIP-447) gets UNSTABLE_OFFSET_COMMIT for a partition while an open
transaction holds an offset of it, and is retried.

A group that does not exist is a group without positions. Version 9 brought the member id and epoch
of KIP-848; for classic groups Apache Kafka reads neither, and so do we.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.offsets.offset_store import NO_LEADER_EPOCH, NO_OFFSET
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

if TYPE_CHECKING:
    from collections.abc import Generator

    from coordinator.offsets.offset_store import CommittedOffset, OffsetStore

Wanted = OffsetFetchRequest.Group.Topic
GroupResponse = OffsetFetchResponse.Group
TopicResponse = OffsetFetchResponse.Group.Topic
PartitionResponse = OffsetFetchResponse.Group.Topic.Partition


def fetch(
    store: OffsetStore, request: OffsetFetchRequest.Group, *, require_stable: bool
) -> Generator[None, None, GroupResponse]:
    """Offsets of one group, in the order requested, or all of them when no topics are given.

    In steps, for requests that name many; each offset is read when its turn comes.
    """
    group_id = request.group_id

    def answer(topic: str, index: int) -> PartitionResponse:
        if require_stable and store.pending.is_pending(group_id, topic, index):
            return _no_position(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = store.find(group_id, topic, index)
        if committed is None:
            return _no_position(index, ErrorCode.NONE)
        return _position(index, committed)

    if request.topics is None:
        wanted = [
            Wanted(name=topic, partition_indexes=list(positions))
            for topic, positions in store.of_group(group_id).items()
        ]
    else:
        wanted = request.topics
    topics = []
    for topic in wanted:
        partitions = []
        for index in topic.partition_indexes:
            partitions.append(answer(topic.name, index))
            yield
        topics.append(
            TopicResponse(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        )
        yield
    return GroupResponse(group_id=group_id, topics=topics)


def _no_position(index: int, error: ErrorCode) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error,
    )


def _position(index: int, committed: CommittedOffset) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=ErrorCode.NONE,
    )
