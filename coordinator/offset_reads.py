"""OffsetFetch: a partition without a position answers offset -1, not an error.

A group that does not exist is a group without positions. Version 9 brought the member id and epoch
of KIP-848; for classic groups Apache Kafka reads neither, and so do we.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.offset_store import NO_LEADER_EPOCH, NO_OFFSET
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import OffsetFetchResponse

if TYPE_CHECKING:
    from coordinator.offset_store import CommittedOffset, OffsetStore
    from protocol.messages.offset_fetch import OffsetFetchRequest

GroupResponse = OffsetFetchResponse.Group
TopicResponse = OffsetFetchResponse.Group.Topic
PartitionResponse = OffsetFetchResponse.Group.Topic.Partition


def fetch(store: OffsetStore, request: OffsetFetchRequest.Group) -> GroupResponse:
    """Positions of one group, in the order asked for, or all there are when no topics are given."""
    if request.topics is None:
        return _fetch_all(store, request.group_id)
    group_id = request.group_id
    topics = [
        TopicResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                _partition(index, store.find(group_id, topic.name, index))
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics
    ]
    return GroupResponse(group_id=group_id, topics=topics)


def _fetch_all(store: OffsetStore, group_id: str) -> GroupResponse:
    topics = [
        TopicResponse(
            name=topic,
            partitions=[_partition(index, committed) for index, committed in positions.items()],
        )
        for topic, positions in store.of_group(group_id).items()
    ]
    return GroupResponse(group_id=group_id, topics=topics)


def _partition(index: int, committed: CommittedOffset | None) -> PartitionResponse:
    if committed is None:
        return PartitionResponse(
            partition_index=index,
            committed_offset=NO_OFFSET,
            committed_leader_epoch=NO_LEADER_EPOCH,
            metadata="",
            error_code=ErrorCode.NONE,
        )
    return PartitionResponse(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=ErrorCode.NONE,
    )
