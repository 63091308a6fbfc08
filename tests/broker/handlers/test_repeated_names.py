"""Duplicate names in a request are answered once: a few bytes must not cost a large answer each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.groups.asked_positions import INDEXES_AT_ONCE
from protocol.errors import ErrorCode
from protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from protocol.messages.groups import DescribeGroupsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.producers import DescribeTransactionsRequest
from protocol.messages.share_group_offsets import DescribeShareGroupOffsetsRequest
from protocol.messages.share_group_state import ReadShareGroupStateRequest, ShareStateQuestion
from protocol.messages.share_groups import ShareGroupDescribeRequest
from protocol.messages.streams_groups import StreamsGroupDescribeRequest
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.transaction_broker import (
    PRODUCER,
    TransactionBroker,
    prepared,
    run_transaction_broker,
)
from tests.broker.handlers.groups.test_share_group_state import KEYS, initialise, ready, requests
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.test_visibility import NOT_TOPIC, on_topic
from tests.broker.handlers.topics.test_create_topics import creation, new
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

TIMES = 20
GROUPS: dict[str, Any] = {"group_ids": ["b", "a"] * TIMES, "include_authorized_operations": False}
DESCRIBED = {
    "classic": (DescribeGroupsRequest(groups=["b", "a"] * TIMES), 6),
    "consumer": (ConsumerGroupDescribeRequest(**GROUPS), 1),
    "share": (ShareGroupDescribeRequest(**GROUPS), 1),
    "streams": (StreamsGroupDescribeRequest(**GROUPS), 0),
    "share offsets": (
        DescribeShareGroupOffsetsRequest(
            groups=[
                DescribeShareGroupOffsetsRequest.Group(group_id=name, topics=None)
                for name in ["b", "a"] * TIMES
            ]
        ),
        1,
    ),
}
Group = OffsetFetchRequest.Group


@pytest.mark.parametrize(("request_", "version"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_group_is_described_once(request_: Any, version: int, tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        answer = await broker.ask(request_, version)
        assert [group.group_id for group in answer.groups] == ["b", "a"]

    run_group_broker(tmp_path, scenario)


def test_a_transaction_is_described_once(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        request = DescribeTransactionsRequest(transactional_ids=[PRODUCER, "other"] * TIMES)
        states = (await broker.ask(request, 0)).transaction_states
        assert [one.transactional_id for one in states] == [PRODUCER, "other"]

    run_transaction_broker(tmp_path, scenario)


def committed(*topics: str) -> OffsetCommitRequest:
    kind = OffsetCommitRequest.Topic
    position = kind.Partition(partition_index=0, committed_offset=1, committed_metadata="m" * 4000)
    return OffsetCommitRequest(
        group_id=GROUP, topics=[kind(name=name, partitions=[position]) for name in topics]
    )


def shown(groups: list[Any]) -> list[tuple[str, list[tuple[str, list[int]]]]]:
    return [
        (
            group.group_id,
            [
                (topic.name, [one.partition_index for one in topic.partitions])
                for topic in group.topics
            ],
        )
        for group in groups
    ]


def test_a_position_is_fetched_once(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        await broker.ask(committed("flights"), 8)
        many = [7, *[0] * 2 * INDEXES_AT_ONCE]
        flights = Group.Topic(name="flights", partition_indexes=many)
        hotels = Group.Topic(name="hotels", partition_indexes=[3])
        groups = [
            *[Group(group_id=GROUP, topics=None)] * TIMES,
            *[Group(group_id=GROUP, topics=[flights, flights])] * TIMES,
            *[Group(group_id=GROUP, topics=[flights, hotels])] * TIMES,
            Group(group_id="other", topics=[flights]),
            *[Group(group_id="other", topics=[])] * 2,
        ]

        answer = await broker.ask(OffsetFetchRequest(groups=groups), 8)
        named = [("flights", [7, 0])]
        assert shown(answer.groups) == [
            (GROUP, [("flights", [0])]),
            (GROUP, named),
            (GROUP, [("hotels", [3])]),
            ("other", named),
            *[("other", [])] * 2,
        ]
        alone = OffsetFetchRequest.Topic(name="flights", partition_indexes=many)
        only = await broker.ask(OffsetFetchRequest(group_id=GROUP, topics=[alone] * TIMES), 7)
        (topic,) = only.topics
        assert [one.committed_offset for one in topic.partitions] == [-1, 1]

    run_group_broker(tmp_path, scenario)


def test_offsets_of_a_share_group_are_described_once(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await broker.find_coordinator()
        kind = DescribeShareGroupOffsetsRequest.Group
        topic = kind.Topic(topic_name="t", partitions=[0, 0, 0])
        group = kind(group_id=GROUP, topics=[topic, topic])
        answer = await broker.ask(DescribeShareGroupOffsetsRequest(groups=[group] * 2), 1)
        numbers = [
            one.partition_index
            for each in answer.groups
            for topic in each.topics
            for one in topic.partitions
        ]
        assert numbers == [0]

    run_group_broker(tmp_path, scenario, **KEYS)


def test_state_of_a_share_partition_is_read_once(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        topic_id = await ready(broker)
        await broker.ask(initialise(topic_id, 0), 0)
        await broker.ask(*requests(topic_id)[0])
        wanted = ShareStateQuestion.Partition(partition=0, leader_epoch=0)
        topic = ShareStateQuestion(topic_id=topic_id, partitions=[wanted] * TIMES)
        answer = await broker.ask(ReadShareGroupStateRequest(group_id="g", topics=[topic] * 2), 0)
        read = [one for result in answer.results for one in result.partitions]
        assert [len(one.state_batches) for one in read] == [1] + [0] * (2 * TIMES - 1)
        again = ErrorCode.INVALID_REQUEST
        assert [one.error_code for one in read] == [0] + [again] * (2 * TIMES - 1)

    run_group_broker(tmp_path, scenario, **KEYS)


def by_id(topic_id: UUID, *names: str) -> MetadataRequest:
    topics = [MetadataRequest.Topic(name=name, topic_id=topic_id) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def test_metadata_of_an_id_comes_once_whatever_names_it_comes_with(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        topic_id = broker.metadata.topic_id("orders")
        names = [str(number) for number in range(TIMES)]
        answer = await broker.ask(by_id(topic_id, *names), 12)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("orders", 0)]

    run_broker(tmp_path, scenario)


def test_a_name_beside_an_id_opens_no_topic_that_is_hidden(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders"), new("open")), 7)
        topic_id = broker.metadata.topic_id("orders")
        broker.services.authorizer = allowing(on_topic("open"))
        answer = await broker.ask(by_id(topic_id, "open"), 12)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [(None, NOT_TOPIC)]

    run_broker(tmp_path, scenario)
