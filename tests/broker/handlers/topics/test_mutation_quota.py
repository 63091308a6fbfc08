"""Topics that are created, grown and deleted faster than a quota allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.quotas.quota_keys import QuotaKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.broker.metered_client import MeteredClient

if TYPE_CHECKING:
    from pathlib import Path

MUTATION = QuotaKey.CONTROLLER_MUTATION_RATE
NONE, EXCEEDED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
STRICT, LENIENT = 7, 5
AT_ONCE = 11
"""Permits of a new bucket at one a second."""


def creation(*names: str, count: int = 1, **fields: Any) -> CreateTopicsRequest:
    topics = [
        CreateTopicsRequest.Topic(
            name=name, num_partitions=count, replication_factor=1, assignments=[], configs=[]
        )
        for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=10_000, **fields)


def codes(response: Any) -> list[int]:
    return [topic.error_code for topic in response.topics]


async def limited(broker: OneBroker) -> MeteredClient:
    """A client that may change one partition a second."""
    client = MeteredClient(broker)
    await client.limit(MUTATION, 1)
    return client


def test_topics_are_refused_once_the_client_has_to_wait(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = await limited(broker)

        response = await client.ask(creation("a", "b", count=AT_ONCE + 3), STRICT)

        assert codes(response) == [NONE, EXCEEDED], "the first may take more than there is"
        assert response.throttle_time_ms == 3000
        assert client.take_rests() == [3000]
        assert set(broker.metadata.topics) == {"a"}

    run_broker(tmp_path, scenario)


def test_older_client_is_served_and_rests(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = await limited(broker)

        response = await client.ask(creation("a", "b", count=AT_ONCE), LENIENT)

        assert codes(response) == [NONE, NONE]
        assert response.throttle_time_ms == AT_ONCE * 1000
        assert client.take_rests() == [AT_ONCE * 1000]

    run_broker(tmp_path, scenario)


def test_topic_that_cannot_be_created_does_not_count(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = await limited(broker)
        await client.ask(creation("a", count=AT_ONCE), STRICT)

        response = await client.ask(creation("a", "bad name", "b"), STRICT)

        assert codes(response) == [
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            NONE,
        ]
        assert client.take_rests() == []

    run_broker(tmp_path, scenario)


def test_creation_that_is_only_tried_counts(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = await limited(broker)

        await client.ask(creation("a", count=AT_ONCE + 1, validate_only=True), STRICT)
        response = await client.ask(creation("a"), STRICT)

        assert codes(response) == [EXCEEDED]
        assert not broker.metadata.topics

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(("version", "code"), [(5, EXCEEDED), (4, NONE)])
def test_deletions_count_by_partitions(version: int, code: ErrorCode, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = MeteredClient(broker)
        await client.ask(creation("a", "b", count=AT_ONCE + 1), STRICT)
        await client.limit(MUTATION, 1)

        request = DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=10_000)
        response = await client.ask(request, version)

        assert {one.name: one.error_code for one in response.responses} == {"a": NONE, "b": code}
        assert client.take_rests() == [response.throttle_time_ms]
        assert set(broker.metadata.topics) == ({"b"} if code else set())

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(("version", "code"), [(3, EXCEEDED), (2, NONE)])
def test_partitions_that_are_added_count(version: int, code: ErrorCode, tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = MeteredClient(broker)
        await client.ask(creation("a", "b"), STRICT)
        await client.limit(MUTATION, 1)

        topics = [
            CreatePartitionsRequest.Topic(name=name, count=AT_ONCE + 1, assignments=None)
            for name in ("a", "b")
        ]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=False)
        response = await client.ask(request, version)

        assert {one.name: one.error_code for one in response.results} == {"a": NONE, "b": NONE}
        assert response.throttle_time_ms == (0 if code else 11_000)
        again = [CreatePartitionsRequest.Topic(name="a", count=20, assignments=None)]
        response = await client.ask(
            CreatePartitionsRequest(topics=again, timeout_ms=10_000, validate_only=False), version
        )
        assert response.results[0].error_code == code
        assert response.throttle_time_ms > 0

    run_broker(tmp_path, scenario)


def test_a_client_without_quota_is_not_throttled(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await limited(broker)
        other = MeteredClient(broker, user="bob")

        response = await other.ask(creation("a", "b", count=100), STRICT)

        assert codes(response) == [NONE, NONE]
        assert other.take_rests() == []

    run_broker(tmp_path, scenario)


def test_topic_of_a_client_that_has_to_wait_is_not_created_on_first_use(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        client = await limited(broker)
        await client.ask(creation("a", count=AT_ONCE + 1), STRICT)
        request = MetadataRequest(
            topics=[MetadataRequest.Topic(name="b")], allow_auto_topic_creation=True
        )

        response = await client.ask(request, 8)

        assert codes(response) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        response = await MeteredClient(broker, user="bob").ask(request, 8)
        assert codes(response) == [ErrorCode.LEADER_NOT_AVAILABLE]

    run_broker(tmp_path, scenario)
