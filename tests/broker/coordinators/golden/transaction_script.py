"""Golden scripts of transactions: requests, and under each what Apache Kafka 4 answered.

As in `golden_script`, with these requests:

    init v5 id=t [timeout=60000] [pid=P1 epoch=0]
    add v3 id=t pid=P1 epoch=0 partitions=flights:0,flights:1      (v4 and v5: [verify=yes])
    offsets v4 id=t pid=P1 epoch=0 group=g
    end v5 id=t pid=P1 epoch=0 how=commit
    produce v12 id=t pid=P1 epoch=0 sequence=0 partition=1
    describe v0 ids=t,u
    list v2 [states=Ongoing] [pids=P1] [duration=5] [pattern=t.*]
    settle v0 id=t       (waits until the transaction is complete, and describes it)

Producer ids are called P1, P2... as they appear, and times are left out but for whether there is
one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.producers import DescribeTransactionsRequest, ListTransactionsRequest
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from protocol.records.builder import NewRecord, build_batch
from protocol.schema import Struct
from protocol.uuids import ZERO_UUID
from tests.broker.coordinators.golden.golden_script import Client, Script, Words, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from protocol.schema import Request

BATCHED_SINCE = 4
TRANSACTION_KEY = 1
UNDER_WAY = ("PrepareCommit", "PrepareAbort")
POLL_SECONDS = 0.02
NOW_MS = 1_700_000_000_000
PRODUCER_ID_FIELDS = ("producer_id", "ongoing_txn_producer_id")
EPOCH_FIELDS = ("producer_epoch", "ongoing_txn_producer_epoch")
LEFT_OUT = ("error_message", "current_leader")
TIME_FIELDS = ("transaction_start_time_ms", "log_append_time_ms", "base_offset", "log_start_offset")


class TransactionScript(Script):
    """One run of a script against one broker."""

    def __init__(self, peer: Client, topic_ids: Mapping[str, UUID]) -> None:
        super().__init__(peer, topic_ids)
        self._producer_ids: dict[str, int] = {}

    async def _step(self, line: str) -> Any:
        verb, *rest = line.split()
        if verb != "settle":
            return await super()._step(line)
        transactional_id = rest[1].removeprefix("id=")
        while True:
            request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            answer = await self._peer.ask(request, 0)
            if answer.transaction_states[0].transaction_state not in UNDER_WAY:
                return answer
            await asyncio.sleep(POLL_SECONDS)  # noqa: TID251

    def _request(self, verb: str, words: Words, version: int) -> Request:
        if "pid" in words:
            words["pid"] = str(self._producer_ids.get(words["pid"], words["pid"]))
        makers: dict[str, Callable[[], Request]] = {
            "init": lambda: InitProducerIdRequest(
                transactional_id=words.get("id", ""),
                transaction_timeout_ms=int(words.get("timeout", "60000")),
                producer_id=int(words.get("pid", "-1")),
                producer_epoch=int(words.get("epoch", "-1")),
            ),
            "add": lambda: add(words, version),
            "offsets": lambda: AddOffsetsToTxnRequest(
                **_producer(words), group_id=words.get("group", "g")
            ),
            "end": lambda: EndTxnRequest(**_producer(words), committed=words["how"] == "commit"),
            "produce": lambda: produce(words, self._topic_ids),
            "describe": lambda: DescribeTransactionsRequest(
                transactional_ids=words["ids"].split(",")
            ),
            "list": lambda: ListTransactionsRequest(
                state_filters=_list(words, "states"),
                producer_id_filters=[self._producer_ids.get(p, 77) for p in _list(words, "pids")],
                duration_filter=int(words.get("duration", "-1")),
                transactional_id_pattern=words.get("pattern"),
            ),
            "find": lambda: FindCoordinatorRequest(
                key=words.get("id", ""),
                key_type=TRANSACTION_KEY,
                coordinator_keys=_list(words, "id"),
            ),
        }
        return makers[verb]()

    def _shown(self, answer: Struct) -> str:
        self._rename(answer)
        return shown(answer, str)

    def _rename(self, answer: object) -> None:
        """Put P1, P2... for producer ids, and leave times out."""
        if isinstance(answer, list):
            for each in answer:
                self._rename(each)
        if not isinstance(answer, Struct):
            return
        for field in answer.FIELDS:
            value = getattr(answer, field.name)
            if field.name in PRODUCER_ID_FIELDS:
                is_told = value >= 0 and not getattr(answer, "error_code", 0)
                setattr(answer, field.name, self._label_of(value) if is_told else None)
            elif field.name in EPOCH_FIELDS:
                setattr(answer, field.name, str(value) if value >= 0 else None)
            elif field.name == "partition_error_code" and value:
                setattr(answer, field.name, ErrorCode(value).name)
            elif field.name in TIME_FIELDS:
                setattr(answer, field.name, "some" if value > 0 else None)
            elif field.name in LEFT_OUT:
                setattr(answer, field.name, None)
            else:
                self._rename(value)

    def _label_of(self, producer_id: int) -> str:
        for label, known in self._producer_ids.items():
            if known == producer_id:
                return label
        label = f"P{len(self._producer_ids) + 1}"
        self._producer_ids[label] = producer_id
        return label


def add(words: Words, version: int) -> AddPartitionsToTxnRequest:
    topics: dict[str, list[int]] = {}
    for each in words["partitions"].split(","):
        topic, _, index = each.partition(":")
        topics.setdefault(topic, []).append(int(index))
    wanted = [AddPartitionsToTxnTopic(name=name, partitions=p) for name, p in topics.items()]
    producer = _producer(words)
    if version < BATCHED_SINCE:
        return AddPartitionsToTxnRequest(
            v3_and_below_topics=wanted,
            **{f"v3_and_below_{name}": value for name, value in producer.items()},
        )
    one = AddPartitionsToTxnRequest.Transaction(
        topics=wanted, verify_only="verify" in words, **producer
    )
    return AddPartitionsToTxnRequest(transactions=[one])


def produce(words: Words, topic_ids: Mapping[str, UUID]) -> ProduceRequest:
    batch = build_batch(
        [NewRecord(NOW_MS, b"k", b"v")],
        producer_id=int(words["pid"]),
        producer_epoch=int(words["epoch"]),
        base_sequence=int(words.get("sequence", "0")),
        is_transactional=True,
    )
    data = ProduceRequest.TopicData.PartitionData(
        index=int(words.get("partition", "0")), records=batch
    )
    topic = ProduceRequest.TopicData(
        name="flights", topic_id=topic_ids.get("flights", ZERO_UUID), partition_data=[data]
    )
    return ProduceRequest(
        transactional_id=words.get("id", ""), acks=-1, timeout_ms=10_000, topic_data=[topic]
    )


def _producer(words: Words) -> dict[str, Any]:
    return {
        "transactional_id": words.get("id", ""),
        "producer_id": int(words.get("pid", "-1")),
        "producer_epoch": int(words.get("epoch", "-1")),
    }


def _list(words: Words, key: str) -> list[str]:
    return [each for each in words.get(key, "").split(",") if each]
