"""Authorisation to heartbeat and describe, and brokers that serve neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "t"
READ_GROUP = (ResourceType.GROUP, GROUP, AclOperation.READ)
DESCRIBE_GROUP = (ResourceType.GROUP, GROUP, AclOperation.DESCRIBE)
DESCRIBE_TOPIC = (ResourceType.TOPIC, TOPIC, AclOperation.DESCRIBE)


async def join(broker: GroupBroker, **said: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
        **said,
    )
    return await broker.ask(request, 1)


async def describe(broker: GroupBroker) -> Any:
    request = ConsumerGroupDescribeRequest(
        group_ids=[GROUP, ""], include_authorized_operations=False
    )
    return (await broker.ask(request, 1)).groups


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        ([], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ([READ_GROUP], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ([READ_GROUP, DESCRIBE_TOPIC], ErrorCode.NONE),
    ],
)
def test_heartbeat_needs_the_group_and_its_topics(
    tmp_path: Path, allowed: list[Any], error: ErrorCode
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        broker.services.authorizer = allowing(*allowed)

        assert (await join(broker)).error_code == error

    run_group_broker(tmp_path, scenario)


def test_description_is_hidden_with_any_of_its_topics(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        await join(broker)
        [whole, nameless] = await describe(broker)
        assert whole.members[0].assignment.topic_partitions[0].topic_name == TOPIC
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID

        broker.services.authorizer = allowing(DESCRIBE_GROUP)
        [hidden, _] = await describe(broker)
        assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])

        broker.services.authorizer = allowing(DESCRIBE_TOPIC)
        [refused, _] = await describe(broker)
        assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    run_group_broker(tmp_path, scenario)


def test_regular_expression_matches_only_topics_the_client_may_describe(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        await broker.create_topic("t-hidden")
        broker.services.authorizer = allowing(READ_GROUP, DESCRIBE_GROUP, DESCRIBE_TOPIC)
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="a",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="t.*",
            topic_partitions=[],
        )
        assert not (await broker.ask(request, 1)).error_code
        shard = broker.groups.shard_for(GROUP)
        group = shard.groups.consumers.groups.find(GROUP)
        assert group is not None
        for _ in range(100):
            if group.resolved:
                break
            await broker.create_topic("another")

        assert group.resolved["t.*"].topics == {TOPIC}

    run_group_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    "keys",
    [{"group_coordinator_rebalance_protocols": ("classic",)}, {}],
    ids=["not offered", "not finalised"],
)
def test_disabled_consumer_groups_answer_unsupported_version(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        if not keys:
            broker.services.features.levels = {}
        await broker.find_coordinator()

        assert (await join(broker)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert {each.error_code for each in await describe(broker)} == {
            ErrorCode.UNSUPPORTED_VERSION
        }

    run_group_broker(tmp_path, scenario, **keys)


def test_member_that_names_too_many_topics_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        assert (await join(broker)).error_code == ErrorCode.NONE
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="b",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["a", "b"],
            topic_partitions=[],
        )
        refused = await broker.ask(request, 1)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert refused.error_message.endswith("2 topics, group.member.max.topics is 1")

    run_group_broker(tmp_path, scenario, group_member_max_topics=1)
