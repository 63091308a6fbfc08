"""CreateTopics, CreatePartitions and DeleteTopics, answered as clients expect."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

import broker.handlers.topics.create_partitions
import broker.handlers.topics.create_topics
import broker.handlers.topics.delete_topics  # noqa: F401  (the handlers register themselves)
from controller.znodes import DELETE_TOPICS
from protocol.errors import ErrorCode
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker

if TYPE_CHECKING:
    from pathlib import Path

Topic = CreateTopicsRequest.Topic


def new(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> Topic:
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[],
        configs=[
            Topic.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def creation(*topics: Topic, timeout_ms: int = 60_000, dry: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=dry)


def growth(name: str, count: int, *, dry: bool = False) -> CreatePartitionsRequest:
    topic = CreatePartitionsRequest.Topic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=dry)


def codes(response: Any) -> dict[str, ErrorCode]:
    parts = getattr(response, "topics", None) or getattr(response, "results", None)
    parts = response.responses if parts is None else parts
    return {part.name: ErrorCode(part.error_code) for part in parts}


@pytest.mark.parametrize("version", range(8))
def test_created_topic_is_led_when_the_answer_comes(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(creation(new("orders", 3, retention_ms="5000")), version)
        assert codes(response) == {"orders": ErrorCode.NONE}
        partition = broker.replicas.partition("orders", 2)
        assert partition is not None
        assert partition.is_leader
        assert partition.log.config.retention_ms == 5000
        shown = broker.metadata.topic("orders")
        assert shown is not None
        assert shown.has_all_leaders
        if version >= 5:
            answer = response.topics[0]
            assert (answer.num_partitions, answer.replication_factor) == (3, 1)
            values = {c.name: (c.value, c.config_source) for c in answer.configs}
            assert values["retention.ms"] == ("5000", 1)
            assert values["cleanup.policy"] == ("delete", 5)
        if version >= 7:
            assert response.topics[0].topic_id == shown.topic_id

    run_broker(tmp_path, scenario)


def test_defaults_fill_in_counts_of_minus_one(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", -1, -1)), 7)
        shown = broker.metadata.topic("orders")
        assert shown is not None
        assert len(shown.partitions) == 4

    run_broker(tmp_path, scenario, num_partitions=4)


@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (0, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_only_minus_one_stands_for_a_default(
    tmp_path: Path, partitions: int, factor: int, error: ErrorCode
) -> None:
    async def scenario(broker: OneBroker) -> None:
        for dry in (True, False):
            asked = creation(new("orders", partitions, factor), dry=dry)
            assert codes(await broker.ask(asked, 7)) == {"orders": error}

    run_broker(tmp_path, scenario)


def test_each_mistake_has_its_code_and_a_message(tmp_path: Path) -> None:
    manual = new("both")
    manual.assignments = [Topic.Assignment(partition_index=0, broker_ids=[0])]
    stranger = new("stranger", -1, -1)
    stranger.assignments = [Topic.Assignment(partition_index=0, broker_ids=[7])]
    placed = new("placed", -1, -1)
    placed.assignments = [Topic.Assignment(partition_index=0, broker_ids=[0])]

    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(
            creation(
                new("good"),
                new("twice"),
                new("twice"),
                new("bad name"),
                new("good_"),
                new("good."),
                new("none", 0),
                new("many", 1, 3),
                new("unknown-key", no_such_key="1"),
                new("bad-value", retention_ms="soon"),
                new("null-value", retention_ms=None),
                new("__cluster_metadata"),
                manual,
                stranger,
                placed,
            ),
            7,
        )
        assert codes(response) == {
            "good": ErrorCode.NONE,
            "twice": ErrorCode.INVALID_REQUEST,
            "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "good_": ErrorCode.NONE,
            "good.": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "none": ErrorCode.INVALID_PARTITIONS,
            "many": ErrorCode.INVALID_REPLICATION_FACTOR,
            "unknown-key": ErrorCode.INVALID_CONFIG,
            "bad-value": ErrorCode.INVALID_CONFIG,
            "null-value": ErrorCode.INVALID_REQUEST,
            "__cluster_metadata": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "both": ErrorCode.INVALID_REQUEST,
            "stranger": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "placed": ErrorCode.NONE,
        }
        assert all(t.error_message for t in response.topics if t.error_code)
        assert all(t.error_message is None for t in response.topics if not t.error_code)
        again = await broker.ask(creation(new("good")), 7)
        assert codes(again) == {"good": ErrorCode.TOPIC_ALREADY_EXISTS}

    run_broker(tmp_path, scenario)


def test_validation_creates_nothing(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(creation(new("dry", 2), dry=True), 6)
        assert codes(response) == {"dry": ErrorCode.NONE}
        assert response.topics[0].num_partitions == 2
        assert await broker.store.children("/brokers/topics") == []

    run_broker(tmp_path, scenario)


def test_no_time_to_wait_is_a_timeout_but_the_topic_comes(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(creation(new("later"), timeout_ms=0), 7)
        assert codes(response) == {"later": ErrorCode.REQUEST_TIMED_OUT}
        await broker.metadata.wait_until(lambda: broker.metadata.topic("later") is not None)

    run_broker(tmp_path, scenario)


def test_only_the_controller_serves_admin_requests(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.controller.retire()
        response = await broker.ask(creation(new("orders")), 7)
        assert codes(response) == {"orders": ErrorCode.NOT_CONTROLLER}
        deletion = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1)
        assert codes(await broker.ask(deletion, 5)) == {"orders": ErrorCode.NOT_CONTROLLER}
        assert codes(await broker.ask(growth("orders", 2), 3)) == {
            "orders": ErrorCode.NOT_CONTROLLER
        }

    run_broker(tmp_path, scenario)


def test_topics_grow_and_never_shrink(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 2)), 7)
        assert codes(await broker.ask(growth("orders", 4, dry=True), 3)) == {
            "orders": ErrorCode.NONE
        }
        for total, code in [
            (4, ErrorCode.NONE),
            (4, ErrorCode.INVALID_PARTITIONS),
            (3, ErrorCode.INVALID_PARTITIONS),
        ]:
            assert codes(await broker.ask(growth("orders", total), 3)) == {"orders": code}
        partition = broker.replicas.partition("orders", 3)
        assert partition is not None
        assert partition.is_leader
        assert codes(await broker.ask(growth("ghost", 4), 0)) == {
            "ghost": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", range(7))
def test_deleted_topic_is_gone_and_its_name_is_free(version: int, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 2)), 7)
        first = broker.metadata.topic_id("orders")
        request = DeleteTopicsRequest(topic_names=["orders", "ghost"], timeout_ms=10_000)
        if version == 6:
            request.topics = [
                DeleteTopicsRequest.Topic(name=name, topic_id=UUID(int=0))
                for name in ("orders", "ghost")
            ]
        assert codes(await broker.ask(request, version)) == {
            "orders": ErrorCode.NONE,
            "ghost": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert broker.metadata.topic("orders") is None
        assert broker.replicas.partition("orders", 0) is None
        assert broker.logs.get("orders", 0) is None
        assert codes(await broker.ask(creation(new("orders")), 7)) == {"orders": ErrorCode.NONE}
        assert broker.metadata.topic_id("orders") not in (first, UUID(int=0))

    run_broker(tmp_path, scenario)


def test_an_empty_name_is_answered_as_one_of_no_topic(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        request = DeleteTopicsRequest(topic_names=[""], timeout_ms=10_000)
        answer = await broker.ask(request, 5)
        assert codes(answer) == {"": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert answer.encode(5)

    run_broker(tmp_path, scenario)


def test_topic_creation_growth_and_deletion_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("dry"), dry=True), 7)
        await broker.ask(creation(new("orders", 2)), 7)
        await broker.ask(growth("orders", 3), 3)
        await broker.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=10_000), 5)

    run_broker(tmp_path, scenario)

    told = [line for line in caplog.messages if line.startswith("topic")]
    lines = [line.partition(" requested by ")[0].rstrip(",") for line in told]
    assert lines[:3] == [
        "topic orders created: partitions 2, replication factor 1",
        "topic orders: partitions increased to 3",
        "topic orders: deletion",
    ]


def test_topics_are_deleted_by_id(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders"), new("kept")), 7)
        wanted = DeleteTopicsRequest.Topic
        topic_id = broker.metadata.topic_id("orders")
        request = DeleteTopicsRequest(
            topics=[
                wanted(name=None, topic_id=topic_id),
                wanted(name=None, topic_id=UUID(int=99)),
                wanted(name="kept", topic_id=broker.metadata.topic_id("kept")),
            ],
            timeout_ms=10_000,
        )
        response = await broker.ask(request, 6)
        assert {(r.name, r.topic_id.int): ErrorCode(r.error_code) for r in response.responses} == {
            ("orders", topic_id.int): ErrorCode.NONE,
            (None, 99): ErrorCode.UNKNOWN_TOPIC_ID,
            ("kept", broker.metadata.topic_id("kept").int): ErrorCode.INVALID_REQUEST,
        }
        assert broker.metadata.topic("orders") is None

    run_broker(tmp_path, scenario)


def test_deletion_can_be_disabled(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        request = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=10_000)
        assert codes(await broker.ask(request, 5)) == {"orders": ErrorCode.TOPIC_DELETION_DISABLED}
        assert codes(await broker.ask(request, 1)) == {"orders": ErrorCode.INVALID_REQUEST}

    run_broker(tmp_path, scenario, delete_topic_enable=False)


def test_a_deletion_is_answered_though_its_end_cannot_be_waited_for(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 1)), 7)
        store = broker.store
        store.breaks_at = lambda path: (
            path == DELETE_TOPICS
            and not store.has_broken
            and broker.metadata.topic("orders") is None
        )
        deletion = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=10_000)
        assert codes(await broker.ask(deletion, 5)) == {"orders": ErrorCode.NONE}
        assert store.has_broken

    run_broker(tmp_path, scenario)
