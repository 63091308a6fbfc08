"""Requests for records, and for what is known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.delete_records import DeleteRecordsRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch

if TYPE_CHECKING:
    from tests.support.sent_requests.about import About, Maker

BY_ID_SINCE = 13
EARLIEST = -2
TIMESTAMP = 1_700_000_000_000
MIB = 1 << 20
A_REPLICA = 7


def produce(about: About, version: int) -> ProduceRequest:
    """Produce a record to each topic; in the other form in a transaction."""
    is_transactional = about.is_form(1, 4)
    header = {}
    if is_transactional:
        header = {
            "producer_id": 4_000_000,
            "producer_epoch": 0,
            "base_sequence": 0,
            "is_transactional": True,
        }
    batch = build_batch([NewRecord(TIMESTAMP, b"key", b"value")], **header)  # type: ignore[arg-type]
    kind = ProduceRequest.TopicData
    data = [kind.PartitionData(index=0, records=memoryview(bytes(batch)))]
    return ProduceRequest(
        transactional_id=about.transactional_id if is_transactional else None,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            kind(topic_id=about.id_of(name), partition_data=data)
            if version >= BY_ID_SINCE
            else kind(name=name, partition_data=data)
            for name in about.topics
        ],
    )


def fetch(about: About, version: int) -> FetchRequest:
    """Fetch the existing records without waiting; in the other form as a follower does."""
    kind = FetchRequest.Topic
    replica = A_REPLICA if about.is_form(1, 4) else -1
    partitions = [kind.Partition(partition=0, fetch_offset=0, partition_max_bytes=MIB)]
    return FetchRequest(
        replica_id=replica,
        replica_state=FetchRequest.ReplicaState(replica_id=replica),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=MIB,
        topics=[
            kind(topic_id=about.id_of(name), partitions=partitions)
            if version >= BY_ID_SINCE
            else kind(topic=name, partitions=partitions)
            for name in about.topics
        ],
    )


def list_offsets(about: About, _: int) -> ListOffsetsRequest:
    """Ask for the earliest offset of the first partition of each topic."""
    kind = ListOffsetsRequest.Topic
    partitions = [kind.Partition(partition_index=0, timestamp=EARLIEST)]
    return ListOffsetsRequest(
        replica_id=-1, topics=[kind(name=name, partitions=partitions) for name in about.topics]
    )


def delete_records(about: About, _: int) -> DeleteRecordsRequest:
    """Delete no records of the first partition of each topic."""
    kind = DeleteRecordsRequest.Topic
    partitions = [kind.Partition(partition_index=0, offset=0)]
    return DeleteRecordsRequest(
        topics=[kind(name=name, partitions=partitions) for name in about.topics],
        timeout_ms=10_000,
    )


def offset_for_leader_epoch(about: About, _: int) -> OffsetForLeaderEpochRequest:
    """Ask for the end offset of epoch 0 in the first partition of each topic."""
    kind = OffsetForLeaderEpochRequest.Topic
    partitions = [kind.Partition(partition=0, leader_epoch=0)]
    replica = A_REPLICA if about.is_form(1) else -1
    return OffsetForLeaderEpochRequest(
        replica_id=replica,
        topics=[kind(topic=name, partitions=partitions) for name in about.topics],
    )


MAKERS: dict[ApiKey, Maker] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
}
