"""Groups on a broker: the internal topic, the log, restarts, leadership, replication."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.topics.topics import NewTopic
from coordinator import records
from protocol.errors import ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataKey
from protocol.messages.group_membership import HeartbeatRequest
from protocol.messages.groups import DeleteGroupsRequest
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetDeleteRequest, OffsetFetchRequest
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import iterate_records
from storage.append.append_source import FROM_COORDINATOR
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.loading import until_forgotten, until_loaded

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OFFSETS_TOPIC = "__consumer_offsets"


async def commit(broker: GroupBroker, offset: int, topic: str = "flights") -> ErrorCode:
    position = OffsetCommitRequest.Topic.Partition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    named = OffsetCommitRequest.Topic(name=topic, partitions=[position])
    answer = await broker.ask(OffsetCommitRequest(group_id=GROUP, topics=[named]), 8)
    code: ErrorCode = answer.topics[0].partitions[0].error_code
    return code


async def committed(broker: GroupBroker, topic: str = "flights") -> int:
    wanted = OffsetFetchRequest.Topic(name=topic, partition_indexes=[0])
    answer = await broker.ask(OffsetFetchRequest(group_id=GROUP, topics=[wanted]), 7)
    assert answer.error_code == ErrorCode.NONE
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


async def heartbeat(broker: GroupBroker, member_id: str) -> ErrorCode:
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)
    code: ErrorCode = (await broker.ask(request, 4)).error_code
    return code


def test_first_look_up_creates_the_offsets_topic_and_answers_when_it_is_there(
    tmp_path: Path,
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        answer = await broker.find_coordinator()
        assert (answer.error_code, answer.node_id, answer.port) == (ErrorCode.NONE, 0, 9092)
        topic = broker.metadata.topic(OFFSETS_TOPIC)
        assert topic is not None
        assert len(topic.partitions) == 4
        overrides = broker.topic_configs.overrides(OFFSETS_TOPIC)
        assert overrides == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }

    run_group_broker(tmp_path, scenario)


def test_topic_that_cannot_be_replicated_enough_is_not_created(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        broker.services.auto_topics.is_alone = False
        answer = await broker.find_coordinator()
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "__consumer_offsets cannot be created" in answer.error_message
        assert broker.metadata.topic(OFFSETS_TOPIC) is None

    run_group_broker(tmp_path, scenario)


def test_group_forms_and_its_generation_is_in_the_log(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        assert await heartbeat(broker, member_id) == ErrorCode.NONE
        partition = broker.replicas.partition(OFFSETS_TOPIC, broker.groups.partition_for(GROUP))
        assert partition is not None
        (batch,) = partition.log.read_batches(0, 100)
        (record,) = iterate_records(batch)
        assert record.key is not None
        decoded = records.decode(record.key, record.value)
        assert decoded is not None
        assert isinstance(decoded.key, GroupMetadataKey)
        assert decoded.key.group == GROUP
        assert record.timestamp == broker.clock.now_ms()

    run_group_broker(tmp_path, scenario)


def test_groups_and_offsets_are_there_again_after_a_restart(tmp_path: Path) -> None:
    members: list[str] = []

    async def before(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        assert await commit(broker, 7) == ErrorCode.NONE
        members.append(await broker.stable_group())

    async def after(broker: GroupBroker) -> None:
        # The store of the test is gone with the process: the topic is found in the log directory.
        await broker.create_topic("flights")
        await lead_offsets_again(broker)
        assert await committed(broker) == 7
        assert await heartbeat(broker, members[0]) == ErrorCode.NONE

    run_group_broker(tmp_path, before)
    run_group_broker(tmp_path, after)


async def lead_offsets_again(broker: GroupBroker) -> None:
    """Create the offsets topic over the logs that are there, and wait until groups are loaded."""
    topic_id = next(log.topic_id for log in broker.logs if log.topic == OFFSETS_TOPIC)
    new = NewTopic(OFFSETS_TOPIC, partitions=4, topic_id=topic_id)
    await broker.topics.create([new], broker.metadata.racks)
    await broker.metadata.wait_until(lambda: broker.metadata.topic(OFFSETS_TOPIC) is not None)
    await until_loaded(broker.groups)


def replication(broker: GroupBroker, replicas: list[int], in_sync: list[int], leader: int) -> None:
    """Send the broker another change of the group's partition."""
    index = broker.groups.partition_for(GROUP)
    partition = broker.replicas.partition(OFFSETS_TOPIC, index)
    assert partition is not None
    state = LeaderAndIsrPartitionState(
        topic_name=OFFSETS_TOPIC,
        partition_index=index,
        controller_epoch=partition.controller_epoch,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        isr=in_sync,
        partition_epoch=partition.partition_epoch + 1,
        replicas=replicas,
    )
    broker.replicas.lead_or_follow(OFFSETS_TOPIC, partition.topic_id, state)


def test_a_commit_is_answered_and_readable_only_once_replicated(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        assert await commit(broker, 1) == ErrorCode.NONE
        replication(broker, [0, 1], [0, 1], leader=0)
        commits = asyncio.ensure_future(commit(broker, 2))  # noqa: TID251
        await asyncio.sleep(0)  # noqa: TID251
        reads = asyncio.ensure_future(committed(broker))  # noqa: TID251
        _, waiting = await asyncio.wait([commits, reads], timeout=0.05)
        assert waiting == {commits, reads}
        replication(broker, [0, 1], [0], leader=0)
        assert await commits == ErrorCode.NONE
        assert await reads == 2

    run_group_broker(tmp_path, scenario)


def test_commit_that_followers_do_not_take_in_time_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        replication(broker, [0, 1], [0, 1], leader=0)
        assert await commit(broker, 2) == ErrorCode.REQUEST_TIMED_OUT

    run_group_broker(tmp_path, scenario, offsets_commit_timeout_ms=20)


def test_broker_that_stops_leading_sends_members_and_committers_away(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        await broker.join()
        parked = asyncio.ensure_future(broker.join(member_id=member_id))  # noqa: TID251
        await asyncio.sleep(0)  # noqa: TID251
        assert not parked.done()
        replication(broker, [0, 1], [0, 1], leader=1)
        assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
        assert await heartbeat(broker, member_id) == ErrorCode.NOT_COORDINATOR
        assert await commit(broker, 1) == ErrorCode.NOT_COORDINATOR

    run_group_broker(tmp_path, scenario)


def test_offset_fetch_under_way_at_a_change_of_leader_answers_not_coordinator(
    tmp_path: Path,
) -> None:
    """The new leader may have newer ones."""
    topic = OffsetFetchRequest.Group.Topic(name="flights", partition_indexes=list(range(500)))
    group = OffsetFetchRequest.Group(group_id=GROUP, topics=[topic])

    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        reading = asyncio.ensure_future(  # noqa: TID251
            broker.ask(OffsetFetchRequest(groups=[group]), 8)
        )
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251
        assert not reading.done()
        replication(broker, [0, 1], [0, 1], leader=1)
        replication(broker, [0, 1], [0], leader=0)

        (answer,) = (await reading).groups
        assert answer.error_code == ErrorCode.NOT_COORDINATOR

    run_group_broker(tmp_path, scenario)


def test_groups_come_back_with_the_leadership(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        replication(broker, [0, 1], [0, 1], leader=1)
        replication(broker, [0, 1], [0], leader=0)
        assert await heartbeat(broker, member_id) == ErrorCode.NONE
        assert (await broker.join()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        synced = await broker.sync(member_id)
        assert synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        await until_loaded(broker.groups)
        assert (await broker.sync(member_id)).assignment == b"all"

    run_group_broker(tmp_path, scenario)


def test_damaged_record_does_not_keep_other_groups_from_loading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        partition = broker.replicas.partition(OFFSETS_TOPIC, broker.groups.partition_for(GROUP))
        assert partition is not None
        damaged = build_batch([NewRecord(1, b"\0\1\0\x09", b"x"), NewRecord(1, b"\0\x63", b"x")])
        partition.append_records(memoryview(damaged), -1, FROM_COORDINATOR, 1)
        assert await commit(broker, 3) == ErrorCode.NONE
        replication(broker, [0, 1], [0, 1], leader=1)
        replication(broker, [0, 1], [0], leader=0)
        await until_loaded(broker.groups)
        assert await committed(broker) == 3
        assert "record at offset 0 skipped" in caplog.text

    run_group_broker(tmp_path, scenario)


def test_clean_up_expires_and_deleted_topics_are_forgotten(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        for topic in ("flights", "weather"):
            await broker.create_topic(topic)
        await broker.find_coordinator()
        await commit(broker, 1, "flights")
        await commit(broker, 1, "weather")
        broker.groups.topics_deleted({"weather"})
        await until_forgotten()
        assert await committed(broker, "weather") == -1
        await broker.groups.clean_up()
        assert await committed(broker) == 1
        broker.clock.ms += 61_000
        await broker.groups.clean_up()
        assert await committed(broker) == -1

    run_group_broker(tmp_path, scenario, offsets_retention_minutes=1)


def test_requests_that_followers_do_not_replicate_in_time_answer_retriable_errors(
    tmp_path: Path,
) -> None:
    """Consumers read positions again after two errors only: Java's 2.8, aiokafka."""
    topic = OffsetFetchRequest.Topic(name="flights", partition_indexes=[0])
    deleted = OffsetDeleteRequest.Topic.Partition(partition_index=0)
    topics = [OffsetDeleteRequest.Topic(name="flights", partitions=[deleted])]

    async def scenario(broker: GroupBroker) -> None:
        for name in ("flights", "weather"):
            await broker.create_topic(name)
        await broker.find_coordinator()
        assert await commit(broker, 1, "weather") == ErrorCode.NONE
        replication(broker, [0, 1], [0, 1], leader=0)
        assert await commit(broker, 2) == ErrorCode.REQUEST_TIMED_OUT

        read = await broker.ask(OffsetFetchRequest(group_id=GROUP, topics=[topic]), 7)
        forgotten = await broker.ask(OffsetDeleteRequest(group_id=GROUP, topics=topics), 0)
        gone = await broker.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)

        assert read.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert forgotten.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert gone.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run_group_broker(tmp_path, scenario, offsets_commit_timeout_ms=20)
