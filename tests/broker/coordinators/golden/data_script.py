"""Golden scripts of what transactions do to data: as `transaction_script`, with these requests.

    topic reads partitions=2              (creates it, and waits for its leaders)
    write v12 topic=reads id=t pid=P1 epoch=0 sequence=0 [partition=1] [count=2] [plain=yes]
    mark v1 pid=P1 epoch=0 how=commit coordinator=0 partitions=reads:0 [group=g] [version=2]
    read v12 topic=reads offset=0 [partition=1] [committed=yes] [max=100]
    where v7 topic=reads timestamp=-1 [partition=1] [committed=yes]
    producers v0 topic=reads partitions=0,1
    positions v3 id=t pid=P1 epoch=0 group=g offsets=0:5,1:6:metadata [generation=1 member=m]
    fetch v7 group=g partitions=0,1 [stable=yes]
    quiet end v5 id=t pid=P1 epoch=0 how=commit     (any other, until it is not refused for now)

Records that are read are shown as the offsets of their batches, who wrote them, and markers.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from coordinator.partitioner import partition_for
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.groups import DescribeGroupsRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.producers import DescribeProducersRequest
from protocol.messages.topics import CreateTopicsRequest
from protocol.messages.transactions import WriteTxnMarkersRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.records.control import parse_marker
from protocol.schema import Struct
from protocol.uuids import ZERO_UUID
from tests.broker.coordinators.golden.golden_script import MEMBER_ID, Script, fetch, shown
from tests.broker.coordinators.golden.transaction_script import (
    NOW_MS,
    POLL_SECONDS,
    TransactionScript,
)
from tests.broker.handlers.one_broker import as_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.offset_fetch import OffsetFetchRequest
    from protocol.schema import Request
    from tests.broker.coordinators.golden.golden_script import Words

OFFSETS_PARTITIONS = 50
MIB = 1 << 20
OFFSET_FIELDS = ("base_offset", "log_start_offset", "current_txn_start_offset")
LEFT_OUT = ("error_message", "current_leader", "diverging_epoch", "snapshot_id", "topic_id")
OF_GROUPS = ("commit", "join", "sync", "leave", "delete", "delete-offsets")
"""Commands that `golden_script` has and `transaction_script` lacks or names otherwise."""
NOT_NOW = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


class DataScript(TransactionScript):
    """One run of a script against one broker."""

    async def _step(self, line: str) -> Any:
        verb, *rest = line.split()
        if verb == "topic":
            await self._create(rest[0], int(rest[1].removeprefix("partitions=")))
            return None
        if verb != "quiet":
            return await super()._step(line)
        while True:
            answer = await super()._step(line.removeprefix("quiet "))
            if answer.error_code not in NOT_NOW:
                return answer
            await asyncio.sleep(POLL_SECONDS)  # noqa: TID251

    async def _create(self, name: str, count: int) -> None:
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        await self._peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        for index in range(count):
            words = {"topic": name, "timestamp": "-1", "partition": str(index)}
            while (await self._peer.ask(where(words), 7)).topics[0].partitions[0].error_code:
                await asyncio.sleep(POLL_SECONDS)  # noqa: TID251
        wanted = MetadataRequest.Topic(name=name)
        metadata = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        found = await self._peer.ask(metadata, 12)
        self._topic_ids = {**self._topic_ids, name: found.topics[0].topic_id}

    def _request(self, verb: str, words: Words, version: int) -> Request:
        makers: dict[str, Callable[[], Request]] = {
            "write": lambda: self._write(words),
            "mark": lambda: mark(words),
            "read": lambda: read(words),
            "where": lambda: where(words),
            "producers": lambda: producers(words),
            "positions": lambda: positions(words),
            "fetch": lambda: self._fetch(words, version),
            "describe-groups": lambda: DescribeGroupsRequest(groups=words["groups"].split(",")),
        }
        if verb in OF_GROUPS:
            return Script._request(self, verb, words, version)
        if verb not in makers:
            return super()._request(verb, words, version)
        if "pid" in words:
            words["pid"] = str(self._producer_ids.get(words["pid"], words["pid"]))
        return makers[verb]()

    def _write(self, words: Words) -> ProduceRequest:
        count = int(words.get("count", "1"))
        batch = build_batch(
            [NewRecord(NOW_MS + index, b"k", b"v") for index in range(count)],
            producer_id=int(words["pid"]),
            producer_epoch=int(words["epoch"]),
            base_sequence=int(words.get("sequence", "0")),
            is_transactional="plain" not in words,
        )
        index = int(words.get("partition", "0"))
        data = ProduceRequest.TopicData.PartitionData(index=index, records=batch)
        name = words["topic"]
        topic = ProduceRequest.TopicData(
            name=name, topic_id=self._topic_ids.get(name, ZERO_UUID), partition_data=[data]
        )
        return ProduceRequest(
            transactional_id=words.get("id"), acks=-1, timeout_ms=10_000, topic_data=[topic]
        )

    def _fetch(self, words: Words, version: int) -> OffsetFetchRequest:
        request = fetch(words, version, self._topic_ids)
        request.require_stable = "stable" in words
        return request

    def _shown(self, answer: Struct) -> str:
        if isinstance(answer, FetchResponse):
            for topic in answer.responses:
                for partition in topic.partitions:
                    data = as_bytes(partition.records or b"")
                    partition.records = self._batches(data).encode()
        self._rename(answer)
        return shown(answer, lambda leaf: MEMBER_ID.sub(self._label, leaf))

    def _rename(self, answer: object) -> None:
        told: dict[str, str | None] = {}
        if isinstance(answer, Struct):
            for field in answer.FIELDS:
                value = getattr(answer, field.name)
                if field.name in OFFSET_FIELDS:
                    told[field.name] = str(value) if value >= 0 else None
                elif field.name in LEFT_OUT:
                    told[field.name] = None
                elif field.name == "last_timestamp":
                    told[field.name] = "some" if value > 0 else None
        super()._rename(answer)
        for name, text in told.items():
            setattr(answer, name, text)

    def _batches(self, data: bytes) -> str:
        parts = []
        for position, header in iterate_headers(data):
            who = "-" if header.producer_id < 0 else self._label_of(header.producer_id)
            what = "data"
            if header.is_control:
                marker = parse_marker(data[position : position + header.size_in_bytes])
                what = "?" if marker is None else marker.type.name.lower()
            elif not header.is_transactional:
                what = "plain"
            span = f"{header.base_offset}-{header.last_offset}"
            parts.append(f"{span} {who}/{header.producer_epoch} {what}")
        return ", ".join(parts)


def mark(words: Words) -> WriteTxnMarkersRequest:
    kind = WriteTxnMarkersRequest.Marker
    topics: dict[str, list[int]] = {}
    for each in [name for name in words.get("partitions", "").split(",") if name]:
        topic, _, index = each.partition(":")
        topics.setdefault(topic, []).append(int(index))
    if "group" in words:
        topics["__consumer_offsets"] = [partition_for(words["group"], OFFSETS_PARTITIONS)]
    marker = kind(
        producer_id=int(words["pid"]),
        producer_epoch=int(words["epoch"]),
        transaction_result=words["how"] == "commit",
        topics=[kind.Topic(name=name, partition_indexes=p) for name, p in topics.items()],
        coordinator_epoch=int(words["coordinator"]),
        transaction_version=int(words.get("version", "0")),
    )
    return WriteTxnMarkersRequest(markers=[marker])


def read(words: Words) -> FetchRequest:
    partition = FetchRequest.Topic.Partition(
        partition=int(words.get("partition", "0")),
        fetch_offset=int(words["offset"]),
        partition_max_bytes=int(words.get("max", MIB)),
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=MIB,
        isolation_level=int("committed" in words),
        topics=[FetchRequest.Topic(topic=words["topic"], partitions=[partition])],
        forgotten_topics_data=[],
    )


def where(words: Words) -> ListOffsetsRequest:
    partition = ListOffsetsRequest.Topic.Partition(
        partition_index=int(words.get("partition", "0")), timestamp=int(words["timestamp"])
    )
    topic = ListOffsetsRequest.Topic(name=words["topic"], partitions=[partition])
    return ListOffsetsRequest(
        replica_id=-1, isolation_level=int("committed" in words), topics=[topic]
    )


def producers(words: Words) -> DescribeProducersRequest:
    indexes = [int(each) for each in words.get("partitions", "0").split(",")]
    topic = DescribeProducersRequest.Topic(name=words["topic"], partition_indexes=indexes)
    return DescribeProducersRequest(topics=[topic])


def positions(words: Words) -> TxnOffsetCommitRequest:
    kind = TxnOffsetCommitRequest.Topic
    partitions = [
        kind.Partition(
            partition_index=int(index),
            committed_offset=int(offset),
            committed_leader_epoch=3,
            committed_metadata=rest[0] if rest else None,
        )
        for index, offset, *rest in (each.split(":") for each in words["offsets"].split(","))
    ]
    return TxnOffsetCommitRequest(
        transactional_id=words.get("id", ""),
        group_id=words.get("group", ""),
        producer_id=int(words["pid"]),
        producer_epoch=int(words["epoch"]),
        generation_id_or_member_epoch=int(words.get("generation", "-1")),
        member_id=words.get("member", ""),
        group_instance_id=words.get("instance"),
        topics=[kind(name=words.get("topic", "flights"), partitions=partitions)],
    )
