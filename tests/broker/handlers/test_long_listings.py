"""Listings of everything there is give way to others, and say what short ones say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

import broker.handlers.brokers.log_dirs
import broker.handlers.topics.metadata
import broker.handlers.transactions.describe_transactions
from broker.handlers.brokers.config_resources import TOPIC
from broker.handlers.topics.metadata import PARTITIONS_AT_ONCE
from broker.requests.steps import STEPS_AT_ONCE
from protocol.errors import ErrorCode
from protocol.messages.configs import ListConfigResourcesRequest
from protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from protocol.messages.log_dirs import DescribeLogDirsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.producers import DescribeTransactionsRequest, ListTransactionsRequest
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from protocol.uuids import ZERO_UUID
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker
from tests.broker.coordinators.transaction_broker import (
    TransactionBroker,
    prepared,
    run_transaction_broker,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.test_long_admin_requests import turns_of_others
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

MANY = 60
WIDE = PARTITIONS_AT_ONCE + 100


def told_of(broker: OneBroker, name: str, partitions: int) -> None:
    """Add a topic without logs here to the broker's metadata."""
    states = [
        UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=1,
            leader=index % 2,  # of whom the second is unknown
            leader_epoch=3,
            isr=[0, 1],
            zk_version=0,
            replicas=[0, 1],
            offline_replicas=[1],
        )
        for index in range(partitions)
    ]
    live = [
        UpdateMetadataRequest.LiveBroker(
            id=one.id,
            endpoints=[
                UpdateMetadataRequest.LiveBroker.Endpoint(
                    port=port, host=host, listener=listener, security_protocol=0
                )
                for listener, (host, port) in one.endpoints.items()
            ],
            rack=one.rack,
        )
        for one in broker.metadata.brokers.values()
    ]
    topic_id = UUID(int=sum(name.encode()) << 64)
    state = UpdateMetadataRequest.TopicState(
        topic_name=name, topic_id=topic_id, partition_states=states
    )
    request = UpdateMetadataRequest(
        controller_id=0, controller_epoch=1, topic_states=[state], live_brokers=live
    )
    broker.metadata.update(request)


def named(*names: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.Topic(name=name, topic_id=ZERO_UUID) for name in names],
        allow_auto_topic_creation=False,
    )


EVERYTHING = MetadataRequest(topics=None)


@pytest.mark.parametrize("version", range(14))
def test_long_and_short_metadata_agree_on_each_topic(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        told_of(broker, "wide", WIDE)
        told_of(broker, "narrow", 2)
        everything = MetadataRequest(topics=[] if version == 0 else None)

        together = await broker.ask(everything, version)
        both = await broker.ask(named("wide", "narrow", "no name"), version)
        alone = await broker.ask(named("narrow"), version)

        assert together.brokers == both.brokers == alone.brokers != []
        assert together.topics == both.topics[:2]
        assert both.topics[1] == alone.topics[0]
        assert both.topics[2].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        codes = [ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE]
        assert [each.error_code for each in both.topics[0].partitions] == codes * (WIDE // 2)

    run_broker(tmp_path, scenario)


def test_long_metadata_gives_way_and_short_metadata_does_not_wait(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        told_of(broker, "wide", WIDE)
        told_of(broker, "narrow", 2)
        assert await turns_of_others(broker, EVERYTHING, 12) >= 2 * WIDE
        assert await turns_of_others(broker, EVERYTHING, 12) == 0, "its bytes are known now"
        assert await turns_of_others(broker, named("narrow"), 12) == 0

    run_broker(tmp_path, scenario)


def under_way(broker: OneBroker) -> int:
    return sum(task.get_name() == "metadata" for task in broker.tasks)


def test_concurrent_metadata_requests_share_one_answer_until_a_change(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        told_of(broker, "wide", WIDE)
        loop = asyncio.get_running_loop()
        asking = [loop.create_task(broker.ask(EVERYTHING, 12)) for _ in range(20)]
        for _ in range(5):
            await asyncio.sleep(0)  # noqa: TID251
        assert under_way(broker) == 1

        told_of(broker, "newer", 3)
        newer = loop.create_task(broker.ask(EVERYTHING, 12))
        await asyncio.sleep(0)  # noqa: TID251
        assert under_way(broker) == 2, "for it must know what has changed"

        assert {topic.name for topic in (await newer).topics} == {"wide", "newer"}
        for each in asking:
            assert [topic.name for topic in (await each).topics] == ["wide"]
        assert await broker.ask(EVERYTHING, 12) == await newer

    run_broker(tmp_path, scenario)


def test_log_directories_are_described_in_slices(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", MANY)), 7)
        assert await turns_of_others(broker, DescribeLogDirsRequest(topics=None), 4) >= MANY

    run_broker(tmp_path, scenario)


def test_log_that_is_deleted_while_logs_are_described_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe_log = broker.handlers.brokers.log_dirs._describe_log
    brokers: list[OneBroker] = []

    def deleting(log: Log) -> Any:
        brokers[0].logs.delete("orders", 1 - log.partition)
        return describe_log(log)

    async def scenario(broker: OneBroker) -> None:
        brokers.append(broker)
        await broker.ask(creation(new("orders", 2)), 7)
        answer = await broker.ask(DescribeLogDirsRequest(topics=None), 4)
        (topic,) = answer.results[0].topics
        assert len(topic.partitions) == 1

    monkeypatch.setattr(broker.handlers.brokers.log_dirs, "_describe_log", deleting)
    run_broker(tmp_path, scenario)


async def commit(broker: GroupBroker, group_id: str) -> None:
    position = OffsetCommitRequest.Topic.Partition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topic = OffsetCommitRequest.Topic(name="flights", partitions=[position])
    await broker.ask(OffsetCommitRequest(group_id=group_id, topics=[topic]), 8)


def test_groups_are_listed_described_and_deleted_in_slices(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        names = [f"group-{number}" for number in range(MANY)]
        for name in names:
            await commit(broker, name)

        assert await turns_of_others(broker, ListGroupsRequest(), 4) >= MANY
        assert await turns_of_others(broker, DescribeGroupsRequest(groups=names), 5) >= MANY
        listed = (await broker.ask(ListGroupsRequest(), 4)).groups
        assert {group.group_id for group in listed} == set(names)
        assert await turns_of_others(broker, DeleteGroupsRequest(groups_names=names), 2) >= MANY
        assert not (await broker.ask(ListGroupsRequest(), 4)).groups

    run_group_broker(tmp_path, scenario)


def test_groups_that_come_while_they_are_listed_harm_nothing(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        names = {f"group-{number}" for number in range(10)}
        for name in names:
            await commit(broker, name)

        listing = asyncio.get_running_loop().create_task(broker.ask(ListGroupsRequest(), 4))
        for number in range(10):
            await commit(broker, f"later-{number}")

        assert {group.group_id for group in (await listing).groups} >= names

    run_group_broker(tmp_path, scenario)


def test_transactions_are_listed_and_described_in_slices(tmp_path: Path) -> None:
    async def scenario(broker: TransactionBroker) -> None:
        await prepared(broker)
        names = [f"producer-{number}" for number in range(MANY)]
        for name in names:
            await broker.initialise(transactional_id=name)

        everything = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
        assert await turns_of_others(broker, everything, 0) >= MANY
        described = DescribeTransactionsRequest(transactional_ids=names)
        assert await turns_of_others(broker, described, 0) >= MANY

    run_transaction_broker(tmp_path, scenario)


def test_others_are_served_while_resources_are_listed(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        names = [f"topic-{number}" for number in range(3 * STEPS_AT_ONCE)]
        for name in names:
            told_of(broker, name, 1)
        request = ListConfigResourcesRequest(resource_types=[TOPIC])
        assert await turns_of_others(broker, request, 1) >= STEPS_AT_ONCE
        listed = await broker.ask(request, 1)
        assert [one.resource_name for one in listed.config_resources] == names

    run_broker(tmp_path, scenario)
