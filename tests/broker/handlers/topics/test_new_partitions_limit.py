"""The limit on partitions created by one request, whichever way it asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import broker.handlers.topics.create_partitions
import broker.handlers.topics.create_topics
import broker.handlers.topics.metadata  # noqa: F401  (the handlers register themselves)
from controller.topics.topics import TopicCommands
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from protocol.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from protocol.uuids import ZERO_UUID
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.handlers.topics.test_create_topics import codes, creation, growth, new

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Response

APACHES_LIMIT = 10_000
INT32_MAX = 2**31 - 1
APACHES_WORDS = "Excessively large number of partitions per request."
NOTHING: list[str] = []

Topic = CreateTopicsRequest.Topic


def placed(name: str, partitions: int) -> Topic:
    topic = new(name, -1, -1)
    topic.assignments = [
        Topic.Assignment(partition_index=index, broker_ids=[0]) for index in range(partitions)
    ]
    return topic


def messages(response: Response) -> set[str | None]:
    parts = getattr(response, "topics", None) or getattr(response, "results", None)
    assert parts is not None
    return {part.error_message for part in parts}


TOO_MUCH = [
    [new("many", APACHES_LIMIT + 1)],
    [new("half", APACHES_LIMIT // 2), new("more", APACHES_LIMIT // 2 + 1)],
    [placed("placed", APACHES_LIMIT + 1)],
    [new("many", APACHES_LIMIT), new("by default", -1)],
    [new("bad name", APACHES_LIMIT + 1), new("good", 1)],
    [new("configured", APACHES_LIMIT + 1, retention_ms="soon"), new("good", 1)],
    [new("most", INT32_MAX)],
    [new("most", INT32_MAX), new("as many", INT32_MAX)],
]


@pytest.mark.parametrize("dry", [False, True], ids=["create", "validate"])
@pytest.mark.parametrize("topics", TOO_MUCH, ids=lambda topics: topics[0].name)
def test_a_request_for_too_many_partitions_is_refused_whole(
    topics: list[Topic], dry: bool, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(creation(*topics, dry=dry), 7)

        assert codes(response) == dict.fromkeys(
            (topic.name for topic in topics), ErrorCode.POLICY_VIOLATION
        )
        (said,) = messages(response)
        assert said is not None
        assert said.startswith(APACHES_WORDS)
        assert await broker.store.children("/brokers/topics") == NOTHING

    run_broker(tmp_path, scenario)


def test_topics_that_are_refused_for_their_names_count_for_nothing(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        twice = new("twice", APACHES_LIMIT)
        reserved = new("__cluster_metadata", APACHES_LIMIT)
        negative = new("negative", -INT32_MAX)
        response = await broker.ask(
            creation(twice, twice, reserved, negative, new("good", 1), dry=True), 7
        )

        assert codes(response) == {
            "twice": ErrorCode.INVALID_REQUEST,
            "__cluster_metadata": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "negative": ErrorCode.INVALID_PARTITIONS,
            "good": ErrorCode.NONE,
        }

    run_broker(tmp_path, scenario)


def test_as_many_as_the_limit_are_created(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        response = await broker.ask(creation(new("three", 3), new("two", 2), dry=True), 7)
        assert codes(response) == {"three": ErrorCode.NONE, "two": ErrorCode.NONE}
        response = await broker.ask(creation(new("four", 4), new("two", 2), dry=True), 7)
        assert set(codes(response).values()) == {ErrorCode.POLICY_VIOLATION}

    run_broker(tmp_path, scenario, max_new_partitions_per_request=5)


@pytest.mark.parametrize("dry", [False, True], ids=["create", "validate"])
@pytest.mark.parametrize("total", [APACHES_LIMIT + 3, INT32_MAX])
def test_a_topic_does_not_grow_by_too_many_partitions(
    total: int, dry: bool, tmp_path: Path
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(new("orders", 2)), 7)
        response = await broker.ask(growth("orders", total, dry=dry), 3)

        assert codes(response) == {"orders": ErrorCode.POLICY_VIOLATION}
        (said,) = messages(response)
        assert said is not None
        assert said.startswith(APACHES_WORDS)
        known = broker.metadata.topic("orders")
        assert known is not None
        assert len(known.partitions) == 2

    run_broker(tmp_path, scenario)


def test_topics_grow_until_the_request_has_too_many_partitions(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(creation(*(new(name, 1) for name in "abc")), 7)
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.Topic(name=name, count=count, assignments=None)
                for name, count in [("a", 4), ("ghost", INT32_MAX), ("b", 4), ("c", 3)]
            ],
            timeout_ms=10_000,
            validate_only=True,
        )
        assert codes(await broker.ask(request, 3)) == {
            "a": ErrorCode.NONE,
            "ghost": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "b": ErrorCode.POLICY_VIOLATION,
            "c": ErrorCode.NONE,
        }

    run_broker(tmp_path, scenario, max_new_partitions_per_request=5)


def wanted(*names: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.Topic(name=name, topic_id=ZERO_UUID) for name in names],
        allow_auto_topic_creation=True,
    )


def test_a_topic_whose_default_count_is_too_large_is_not_created_on_demand(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.ask(wanted("orders"), 12)
        await broker.settle("create topics on first use")

        assert "topic orders not created" in caplog.text
        assert APACHES_WORDS in caplog.text
        assert await broker.store.children("/brokers/topics") == NOTHING

    run_broker(tmp_path, scenario, num_partitions=6, max_new_partitions_per_request=5)


def test_no_more_partitions_are_under_way_on_demand_than_a_request_may_create(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        names = [f"topic-{number}" for number in range(4)]
        answered = codes(await broker.ask(wanted(*names), 12))
        begun = [name for name, code in answered.items() if code is ErrorCode.LEADER_NOT_AVAILABLE]
        later = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert begun == names[:2]
        assert [answered[name] for name in names[2:]] == [later, later]

        await broker.metadata.wait_until(lambda: set(begun) <= set(broker.metadata.topics))
        await broker.settle("create topics on first use")
        answered = codes(await broker.ask(wanted(*names), 12))
        assert [answered[name] for name in names] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.LEADER_NOT_AVAILABLE,
            ErrorCode.LEADER_NOT_AVAILABLE,
        ]

    run_broker(tmp_path, scenario, num_partitions=2, max_new_partitions_per_request=5)


def test_topics_that_are_wanted_together_are_created_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A creation reads the names of all topics: one for each topic would take for ever."""
    created: list[int] = []
    create = TopicCommands.create

    async def counting(commands: TopicCommands, topics: Any, *others: Any, **more: Any) -> Any:
        created.append(len(topics))
        return await create(commands, topics, *others, **more)

    async def scenario(broker: OneBroker) -> None:
        monkeypatch.setattr(TopicCommands, "create", counting)
        names = [f"topic-{number}" for number in range(50)]
        await broker.ask(wanted(*names), 12)
        await broker.ask(wanted("later"), 12)
        await broker.metadata.wait_until(lambda: {*names, "later"} <= set(broker.metadata.topics))

    run_broker(tmp_path, scenario)
    assert sum(created) == 51
    assert len(created) <= 3
