"""Topics that may be created, grown and deleted, and the errors of those that may not."""

from __future__ import annotations

import asyncio

import pytest

from controller.partitions.partition_growth import PartitionGrowth
from controller.topics.topic_names import name_problem
from controller.topics.topics import CreatedTopic, NewTopic
from controller.znodes import config_path, decode_config
from protocol.errors import ApiError, ErrorCode
from tests.controller.harness import Cluster, run_cluster, turns


def _code(result: object) -> ErrorCode:
    assert isinstance(result, ApiError)
    return result.code


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 250, "a\n"])
def test_illegal_names_are_refused_with_a_reason(name: str) -> None:
    assert name_problem(name)


@pytest.mark.parametrize("name", ["a", "a.b", "a_b-C9", "...", "x" * 249])
def test_legal_names_pass(name: str) -> None:
    assert name_problem(name) is None


def test_one_bad_topic_does_not_stop_the_others() -> None:
    async def scenario(cluster: Cluster) -> None:
        results = await cluster.topics.create(
            [
                NewTopic("good", 2, 1, configs={"retention.ms": "5"}),
                NewTopic("bad name"),
                NewTopic("wide", 1, 3),
                NewTopic("good.one"),
                NewTopic("good_one"),
                NewTopic("manual", assignment={0: (0,), 1: (0,)}),
            ],
            cluster.racks,
        )
        assert isinstance(results["good"], CreatedTopic)
        assert len(results["good"].assignment) == 2
        assert _code(results["bad name"]) is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert _code(results["wide"]) is ErrorCode.INVALID_REPLICATION_FACTOR
        assert _code(results["good_one"]) is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert "good.one" in str(results["good_one"])
        assert await cluster.store.children("/brokers/topics") == ["good", "good.one", "manual"]
        node = await cluster.store.get(config_path("topics", "good"))
        assert decode_config("", node.data) == {"retention.ms": "5"}
        again = await cluster.topics.create([NewTopic("good")], cluster.racks)
        assert _code(again["good"]) is ErrorCode.TOPIC_ALREADY_EXISTS

    run_cluster(scenario, 0)


def test_validation_writes_nothing() -> None:
    async def scenario(cluster: Cluster) -> None:
        results = await cluster.topics.create([NewTopic("dry")], cluster.racks, validate_only=True)
        assert isinstance(results["dry"], CreatedTopic)
        assert await cluster.store.children("/brokers/topics") == []

    run_cluster(scenario, 0)


@pytest.mark.parametrize(
    ("growth", "code", "word"),
    [
        (PartitionGrowth("orders", 2), ErrorCode.INVALID_PARTITIONS, "already has 2"),
        (PartitionGrowth("orders", 1), ErrorCode.INVALID_PARTITIONS, "higher than the requested 1"),
        (PartitionGrowth("ghost", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "ghost"),
        (
            PartitionGrowth("orders", 4, [(0,)]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "needs 2 assignments",
        ),
        (PartitionGrowth("orders", 3, [(8,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 8"),
        (PartitionGrowth("orders", 3, [(0, 1)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "has 2"),
    ],
)
def test_bad_growth_is_refused(growth: PartitionGrowth, code: ErrorCode, word: str) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.topics.create([NewTopic("orders", 2)], cluster.racks)
        await turns()
        with pytest.raises(ApiError) as caught:
            await cluster.topics.grow(growth, cluster.racks)
        assert caught.value.code is code
        assert word in caught.value.message

    run_cluster(scenario, 0, 1)


def test_growth_can_be_placed_and_tried_out() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.topics.create([NewTopic("orders", 1)], cluster.racks)
        growth = PartitionGrowth("orders", 3, [(1,), (0,)])
        assert await cluster.topics.grow(growth, cluster.racks, validate_only=True) == 2
        assert await cluster.topics.grow(growth, cluster.racks) == 2
        with pytest.raises(ApiError):
            await cluster.topics.grow(growth, cluster.racks)

    run_cluster(scenario, 0, 1)


def test_deleting_reports_each_topic() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.topics.create([NewTopic("orders")], cluster.racks)
        await turns()
        results = await cluster.topics.delete(["orders", "ghost"])
        assert results["orders"] is None
        assert _code(results["ghost"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run_cluster(scenario, 0)


def test_many_topics_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        topics = [NewTopic(f"t{number}") for number in range(1000)]
        await cluster.topics.create(topics, cluster.racks)
        context = cluster.members[0].controller.context
        assert context is not None
        async with asyncio.timeout(30):
            while len(context.leadership) < 1000:
                await turns(1)

    run_cluster(scenario, 0)
