"""Commits of many positions: stored in pieces, between which others are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.coordinators.shard_runtime import ShardRuntime
from broker.handlers.groups.commit_pieces import POSITIONS_AT_ONCE
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetDeleteRequest, OffsetFetchRequest
from protocol.messages.transactions import AddOffsetsToTxnRequest, EndTxnRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.transaction_broker import (
    PRODUCER,
    TransactionBroker,
    prepared,
    run_transaction_broker,
)
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

MANY = 2000
WIDE = 600
TOPIC = "flights"
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of records in each append of a coordinator."""
    counts: list[int] = []
    append = ShardRuntime._append

    def counting(runtime: Any, records: Any, *others: Any) -> Any:
        counts.append(len(records))
        return append(runtime, records, *others)

    monkeypatch.setattr(ShardRuntime, "_append", counting)
    return counts


def topics_of(kind: Any, *, is_one: bool) -> list[Any]:
    """Positions of the same partition, one after the other; each tenth of one that is not there."""
    positions = [
        kind.Partition(
            partition_index=0 if n % 10 else 7, committed_offset=n, committed_metadata=""
        )
        for n in range(1, MANY + 1)
    ]
    if is_one:
        return [kind(name=TOPIC, partitions=positions), kind(name="nobody", partitions=positions)]
    return [kind(name=TOPIC, partitions=[one]) for one in positions]


def check(answer: Any, topics: list[Any], appended: list[int]) -> None:
    """Check that all is answered in order, and was stored in pieces."""
    assert [topic.name for topic in answer.topics] == [topic.name for topic in topics]
    for topic, asked in zip(answer.topics, topics, strict=True):
        codes = [(each.partition_index, each.error_code) for each in topic.partitions]
        is_known = topic.name == TOPIC
        assert codes == [
            (each.partition_index, 0 if is_known and each.partition_index == 0 else UNKNOWN)
            for each in asked.partitions
        ]
    assert sum(appended) == MANY * 9 // 10
    assert max(appended) < 2 * POSITIONS_AT_ONCE


async def position(broker: Any) -> int:
    wanted = OffsetFetchRequest.Group.Topic(name=TOPIC, partition_indexes=[0])
    group = OffsetFetchRequest.Group(group_id=GROUP, topics=[wanted])
    (answer,) = (await broker.ask(OffsetFetchRequest(groups=[group]), 8)).groups
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.parametrize("is_one", [True, False])
def test_commit_is_stored_in_pieces(is_one: bool, appended: list[int], tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        await broker.find_coordinator()
        topics = topics_of(OffsetCommitRequest.Topic, is_one=is_one)
        answer = await broker.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        check(answer, topics, appended)
        assert await position(broker) == MANY - 1

    run_group_broker(tmp_path, scenario)


@pytest.mark.parametrize("is_one", [True, False])
def test_commit_in_a_transaction_is_stored_in_pieces(
    is_one: bool, appended: list[int], tmp_path: Path
) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        await broker.create_topic(TOPIC)
        await broker.find_coordinator()
        begun = await broker.initialise()
        who = {
            "transactional_id": PRODUCER,
            "producer_id": begun.producer_id,
            "producer_epoch": begun.producer_epoch,
        }
        await broker.ask(AddOffsetsToTxnRequest(**who, group_id=GROUP), 3)
        appended.clear()
        topics = topics_of(TxnOffsetCommitRequest.Topic, is_one=is_one)
        request = TxnOffsetCommitRequest(**who, group_id=GROUP, topics=topics)
        check(await broker.ask(request, 3), topics, appended)
        await broker.ask(EndTxnRequest(**who, committed=True), 3)

    run_transaction_broker(tmp_path, scenario)


def deletion(*indexes: int) -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequest.Topic.Partition(partition_index=index) for index in indexes]
    topic = OffsetDeleteRequest.Topic(name=TOPIC, partitions=partitions)
    return OffsetDeleteRequest(group_id=GROUP, topics=[topic])


def test_positions_are_deleted_in_pieces(appended: list[int], tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.ask(creation(new(TOPIC, WIDE)), 7)
        positions = [
            OffsetCommitRequest.Topic.Partition(
                partition_index=n, committed_offset=n, committed_metadata=""
            )
            for n in range(WIDE)
        ]
        topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=positions)
        await broker.ask(OffsetCommitRequest(group_id=GROUP, topics=[topic]), 8)
        appended.clear()

        answer = await broker.ask(deletion(*range(WIDE), 0, WIDE), 0)

        assert answer.error_code == ErrorCode.NONE
        codes = [each.error_code for each in answer.topics[0].partitions]
        assert codes == [ErrorCode.NONE] * (WIDE + 1) + [UNKNOWN]
        assert sum(appended) == WIDE + 1, "each once, and the group"
        assert max(appended) <= POSITIONS_AT_ONCE
        answer = await broker.ask(deletion(0), 0)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    run_group_broker(tmp_path, scenario)


def test_group_of_which_a_position_is_deleted_twice_stays(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.ask(creation(new(TOPIC, 2)), 7)
        await broker.find_coordinator()
        topics = topics_of(OffsetCommitRequest.Topic, is_one=True)[:1]
        topics[0].partitions = [
            OffsetCommitRequest.Topic.Partition(
                partition_index=n, committed_offset=1, committed_metadata=""
            )
            for n in range(2)
        ]
        await broker.ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 8)
        await broker.ask(deletion(1, 1), 0)
        assert (await broker.ask(deletion(0), 0)).error_code == ErrorCode.NONE

    run_group_broker(tmp_path, scenario)
