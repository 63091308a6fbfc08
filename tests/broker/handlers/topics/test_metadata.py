"""Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

import broker.handlers.brokers.cluster
import broker.handlers.topics.create_topics
import broker.handlers.topics.metadata
import broker.handlers.topics.topic_partitions  # noqa: F401  (the handlers register themselves)
from broker.metadata.metadata_cache import MetadataCache
from controller.topics.topics import NewTopic
from protocol.errors import ErrorCode
from protocol.messages.cluster import DescribeClusterRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.topic_partitions import DescribeTopicPartitionsRequest
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from protocol.uuids import ZERO_UUID
from tests.broker.connections import turns
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

Topic = MetadataRequest.Topic
NOT_REQUESTED = -(2**31)


def by_name(*names: str, create: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[Topic(name=name, topic_id=ZERO_UUID) for name in names],
        allow_auto_topic_creation=create,
    )


def topics(response: Any) -> dict[str, ErrorCode]:
    return {topic.name: ErrorCode(topic.error_code) for topic in response.topics}


@pytest.mark.parametrize("version", range(14))
def test_every_version_names_broker_leader_and_replicas(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 2)), 7)
        response = await broker.ask(by_name("orders"), version)
        node = response.brokers[0]
        assert (node.node_id, node.host, node.port) == (0, "127.0.0.1", 9092)
        topic = response.topics[0]
        assert [p.partition_index for p in topic.partitions] == [0, 1]
        assert all(p.leader_id == 0 and p.replica_nodes == [0] for p in topic.partitions)
        if version >= 1:
            assert response.controller_id == 0
            assert node.rack == "r1"
        if version >= 7:
            assert topic.partitions[0].leader_epoch == 0
        if version >= 8:
            assert topic.topic_authorized_operations == NOT_REQUESTED
        if version >= 10:
            assert topic.topic_id == broker.metadata.topic_id("orders")

    run_broker(tmp_path, scenario)


def test_null_and_empty_lists_ask_for_all_or_none(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("a"), new("b")), 7)
        everything = MetadataRequest(topics=None)
        nothing = MetadataRequest(topics=[])
        assert set(topics(await broker.ask(nothing, 0))) == {"a", "b"}
        for version in range(1, 14):
            assert set(topics(await broker.ask(everything, version))) == {"a", "b"}
            assert topics(await broker.ask(nothing, version)) == {}
        await broker.ask(creation(new("c")), 7)
        assert set(topics(await broker.ask(everything, 12))) == {"a", "b", "c"}

    run_broker(tmp_path, scenario)


def test_large_answers_are_the_same_when_repeated_and_follow_changes(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("wide", 120)), 7)
        for request in (MetadataRequest(topics=None), by_name("wide")):
            first, second = [await broker.ask(request, 12) for _ in range(2)]
            assert first == second
            assert len(first.topics[0].partitions) == 120
        await broker.ask(creation(new("other", 3)), 7)
        everything = await broker.ask(MetadataRequest(topics=None), 12)
        assert set(topics(everything)) == {"wide", "other"}

    run_broker(tmp_path, scenario)


def test_topics_are_found_by_id(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        topic_id = broker.metadata.topic_id("orders")
        request = MetadataRequest(
            topics=[Topic(name=None, topic_id=topic_id), Topic(name=None, topic_id=UUID(int=5))]
        )
        response = await broker.ask(request, 12)
        assert topics(response) == {"orders": ErrorCode.NONE, None: ErrorCode.UNKNOWN_TOPIC_ID}
        early = MetadataRequest(topics=[Topic(name="orders", topic_id=topic_id)])
        response = await broker.ask(early, 11)
        assert topics(response) == {"orders": ErrorCode.INVALID_REQUEST}

    run_broker(tmp_path, scenario)


def test_unknown_topics_are_created_only_if_client_and_broker_allow_it(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(by_name("orders", "bad name"), 9)
        assert topics(response) == {
            "orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        response = await broker.ask(by_name("orders", "bad name", create=True), 9)
        assert topics(response) == {
            "orders": ErrorCode.LEADER_NOT_AVAILABLE,
            "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        await broker.metadata.wait_until(lambda: broker.metadata.topic("orders") is not None)
        assert topics(await broker.ask(by_name("orders"), 9)) == {"orders": ErrorCode.NONE}

    run_broker(tmp_path, scenario)


def test_names_that_collide_are_refused_while_one_of_them_is_being_created(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(by_name("a.b", "a_b", create=True), 9)
        assert topics(response) == {
            "a.b": ErrorCode.LEADER_NOT_AVAILABLE,
            "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        await broker.metadata.wait_until(lambda: broker.metadata.topic("a.b") is not None)
        assert "not created" not in caplog.text

    run_broker(tmp_path, scenario)


def test_a_name_that_collides_with_a_topic_not_heard_of_yet_is_no_error_of_the_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.topics.create([NewTopic("a.b", 1)], broker.metadata.racks)
        assert broker.metadata.topic("a.b") is None
        await broker.ask(by_name("a_b", create=True), 9)
        await broker.metadata.wait_until(lambda: broker.metadata.topic("a.b") is not None)
        await turns()
        (told,) = [one for one in caplog.records if "not created" in one.getMessage()]
        assert told.levelname == "WARNING"

    run_broker(tmp_path, scenario)


def test_broker_can_forbid_automatic_creation(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(by_name("orders", create=True), 9)
        assert topics(response) == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    run_broker(tmp_path, scenario, auto_create_topics_enable=False)


def test_too_few_brokers_for_automatic_creation(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(by_name("orders", create=True), 9)
        assert topics(response) == {"orders": ErrorCode.INVALID_REPLICATION_FACTOR}

    run_broker(tmp_path, scenario, default_replication_factor=2)


def test_internal_topics_get_their_own_shape(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(by_name("__consumer_offsets", create=True), 9)
        await broker.metadata.wait_until(
            lambda: broker.metadata.topic("__consumer_offsets") is not None
        )
        response = await broker.ask(by_name("__consumer_offsets"), 9)
        assert response.topics[0].is_internal
        assert len(response.topics[0].partitions) == 50
        partition = broker.replicas.partition("__consumer_offsets", 0)
        assert partition is not None
        assert partition.log.config.cleanup_policy == frozenset({"compact"})

    run_broker(tmp_path, scenario)


def test_authorized_operations_come_on_request(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders")), 7)
        request = by_name("orders")
        request.include_topic_authorized_operations = True
        request.include_cluster_authorized_operations = True
        response = await broker.ask(request, 10)
        assert response.topics[0].topic_authorized_operations == 3576
        assert response.cluster_authorized_operations == 8096

    run_broker(tmp_path, scenario)


def told(leader: int, *, epoch: int = 3, controller_epoch: int = 1) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(
        partition_index=0,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=[0, 1],
        zk_version=0,
        replicas=[0, 1],
        offline_replicas=[1],
    )
    endpoint = UpdateMetadataRequest.LiveBroker.Endpoint
    return UpdateMetadataRequest(
        controller_id=0,
        controller_epoch=controller_epoch,
        topic_states=[
            UpdateMetadataRequest.TopicState(
                topic_name="orders", topic_id=UUID(int=7), partition_states=[state]
            )
        ],
        live_brokers=[
            UpdateMetadataRequest.LiveBroker(
                id=0,
                endpoints=[endpoint(port=1, host="h", listener="PLAINTEXT", security_protocol=0)],
            ),
            UpdateMetadataRequest.LiveBroker(
                id=2,
                endpoints=[endpoint(port=2, host="h", listener="OTHER", security_protocol=0)],
            ),
        ],
    )


def test_leaderless_partition_keeps_its_leader_epoch(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.metadata.update(told(-1))
        partition = (await broker.ask(by_name("orders"), 9)).topics[0].partitions[0]
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (5, -1, 3)
        assert partition.offline_replicas == [1]

    run_broker(tmp_path, scenario)


def test_leader_without_the_clients_listener(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.metadata.update(told(2))
        new_client = (await broker.ask(by_name("orders"), 6)).topics[0].partitions[0]
        assert new_client.error_code == ErrorCode.LISTENER_NOT_FOUND
        old_client = (await broker.ask(by_name("orders"), 5)).topics[0].partitions[0]
        assert old_client.error_code == ErrorCode.LEADER_NOT_AVAILABLE

    run_broker(tmp_path, scenario)


def test_cache_forgets_deleted_topics() -> None:
    cache = MetadataCache()
    assert cache.update(told(0, controller_epoch=4)).error_code == ErrorCode.NONE
    assert cache.topic_name(UUID(int=7)) == "orders"
    cache.update(told(-2, controller_epoch=4))
    assert cache.topic("orders") is None
    assert cache.topic_name(UUID(int=7)) is None


@pytest.mark.parametrize("version", range(3))
def test_cluster_is_described(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(
            DescribeClusterRequest(include_cluster_authorized_operations=True), version
        )
        assert (response.cluster_id, response.controller_id) == ("a-cluster", 0)
        assert [(b.broker_id, b.rack) for b in response.brokers] == [(0, "r1")]
        assert response.cluster_authorized_operations == 8096

    run_broker(tmp_path, scenario)


def page(limit: int, *names: str, cursor: tuple[str, int] | None = None) -> Any:
    kind = DescribeTopicPartitionsRequest
    return kind(
        topics=[kind.Topic(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and kind.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def test_pages_join_up_to_the_whole(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("b", 3), new("a", 2), new("c", 1)), 7)
        whole = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
        for limit in range(1, 8):
            seen: list[tuple[str, int]] = []
            cursor: tuple[str, int] | None = None
            while True:
                response = await broker.ask(page(limit, cursor=cursor), 0)
                for topic in response.topics:
                    seen += [(topic.name, p.partition_index) for p in topic.partitions]
                if response.next_cursor is None:
                    break
                cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
            assert seen == whole

    run_broker(tmp_path, scenario)


def test_named_topics_come_sorted_once_and_unknown_ones_with_an_error(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("b"), new("a")), 7)
        response = await broker.ask(page(2000, "b", "z", "a", "b", "bad name"), 0)
        assert topics(response) == {
            "a": ErrorCode.NONE,
            "b": ErrorCode.NONE,
            "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "z": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert [topic.name for topic in response.topics] == ["a", "b", "bad name", "z"]
        response = await broker.ask(page(1, "a", cursor=("a", -1)), 0)
        assert topics(response) == {"a": ErrorCode.INVALID_REQUEST}

    run_broker(tmp_path, scenario)
