"""Authorisation to heartbeat and describe, and the internal topics created for an application."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from coordinator.streams_groups.topology import StatusCode
from protocol.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupKeyValue,
)
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.support.broker_parts.allowing import allowing
from tests.support.topologies import Topology, internal, part

if TYPE_CHECKING:
    from pathlib import Path

TOPIC, CHANGELOG = "t", "app-changelog"
READ_GROUP = (ResourceType.GROUP, GROUP, AclOperation.READ)
DESCRIBE_GROUP = (ResourceType.GROUP, GROUP, AclOperation.DESCRIBE)
DESCRIBE_TOPICS = [(ResourceType.TOPIC, name, AclOperation.DESCRIBE) for name in (TOPIC, CHANGELOG)]
CREATE_TOPIC = (ResourceType.TOPIC, CHANGELOG, AclOperation.CREATE)
CREATE_ON_CLUSTER = (ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CREATE)
AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}


async def join(
    broker: GroupBroker, *sources: str, replication_factor: int = 0, **configs: str
) -> Any:
    changelog = internal(CHANGELOG, replication_factor=replication_factor)
    if configs:
        changelog.topic_configs = [
            StreamsGroupKeyValue(key=key.replace("_", "."), value=configs[key]) for key in configs
        ]
    parts = [part("0", list(sources or [TOPIC]), changelogs=[changelog])]
    request = StreamsGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a",
        member_epoch=0,
        endpoint_information_epoch=-1,
        rebalance_timeout_ms=60_000,
        topology=Topology(epoch=0, subtopologies=parts),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )
    return await broker.ask(request, 0)


async def stay(broker: GroupBroker, epoch: int) -> Any:
    request = StreamsGroupHeartbeatRequest(
        group_id=GROUP, member_id="a", member_epoch=epoch, endpoint_information_epoch=0
    )
    return await broker.ask(request, 0)


async def describe(broker: GroupBroker) -> Any:
    request = StreamsGroupDescribeRequest(
        group_ids=[GROUP, ""], include_authorized_operations=False
    )
    return (await broker.ask(request, 0)).groups


async def created(broker: GroupBroker) -> int:
    """The number of partitions of the changelog, once it is there."""
    await broker.metadata.wait_until(lambda: broker.metadata.topic(CHANGELOG) is not None)
    topic = broker.metadata.topic(CHANGELOG)
    assert topic is not None
    return len(topic.partitions)


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        ([], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ([READ_GROUP, DESCRIBE_TOPICS[0]], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ([READ_GROUP, *DESCRIBE_TOPICS], ErrorCode.NONE),
    ],
)
def test_heartbeat_needs_the_group_and_all_topics(
    tmp_path: Path, allowed: list[Any], error: ErrorCode
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        broker.services.authorizer = allowing(*allowed)

        assert (await join(broker)).error_code == error

    run_group_broker(tmp_path, scenario, **AT_ONCE)


@pytest.mark.parametrize("right", [CREATE_TOPIC, CREATE_ON_CLUSTER], ids=["topic", "cluster"])
def test_changelog_is_created_with_create_on_topic_or_cluster(tmp_path: Path, right: Any) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        broker.services.authorizer = allowing(READ_GROUP, *DESCRIBE_TOPICS, right)
        answer = await join(broker)
        [status] = answer.status
        assert status.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        assert await created(broker) == 1

        answer = await stay(broker, answer.member_epoch)
        assert answer.status == []
        assert [each.partitions for each in answer.active_tasks] == [[0]]

    run_group_broker(tmp_path, scenario, **AT_ONCE)


@pytest.mark.parametrize(
    ("factor", "default", "problem"),
    [
        (0, 1, None),
        (-1, 1, None),
        (0, 2, "replication factor 2 is larger"),
        (-1, 2, "replication factor 2 is larger"),
        (1, 2, None),
        (-2, 1, "Replication factor must be larger than 0"),
    ],
)
def test_changelog_has_the_default_replication_factor_for_0_and_minus_1(
    tmp_path: Path, factor: int, default: int, problem: str | None
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        answer = await join(broker, replication_factor=factor)
        if problem is None:
            assert await created(broker) == 1
            return
        while "Creation failed" not in answer.status[0].status_detail:
            await asyncio.sleep(0)  # noqa: TID251
            answer = await stay(broker, answer.member_epoch)
        assert problem in answer.status[0].status_detail

    run_group_broker(tmp_path, scenario, **AT_ONCE, default_replication_factor=default)


def test_missing_create_rights_are_reported_in_the_status_detail(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        broker.services.authorizer = allowing(READ_GROUP, *DESCRIBE_TOPICS)
        [status] = (await join(broker)).status

        assert status.status_detail == (
            f"Internal topics are missing: {CHANGELOG}; "
            f"Unauthorized to CREATE on topics {CHANGELOG}."
        )
        assert broker.metadata.topic(CHANGELOG) is None

    run_group_broker(tmp_path, scenario, **AT_ONCE)


def test_failed_creation_of_an_internal_topic_is_reported_and_retried(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        answer = await join(broker, retention_ms="for ever")
        [status] = answer.status
        assert "; Creation failed: app-changelog (" in status.status_detail
        assert "retention.ms" in status.status_detail
        topics = broker.groups.streams_topics
        assert topics.begin([CHANGELOG], broker.clock.ms) == []

        broker.clock.ms += 10_000
        assert topics.begin([CHANGELOG], broker.clock.ms) == [CHANGELOG]

    run_group_broker(tmp_path, scenario, **AT_ONCE)


@pytest.mark.parametrize("topic", ["__consumer_offsets", "no topic", ""])
def test_topology_of_topics_that_no_application_has_is_refused(tmp_path: Path, topic: str) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        answer = await join(broker, topic)

        assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert topic in answer.error_message

    run_group_broker(tmp_path, scenario)


def test_topology_of_too_many_parts_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        answer = await join(broker, *(f"t{number}" for number in range(50)))

        assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY

    run_group_broker(tmp_path, scenario, group_streams_max_topology_size=50)


def test_description_is_hidden_with_any_of_its_topics(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        await broker.create_topic(TOPIC)
        await join(broker)
        [whole, nameless] = await describe(broker)
        assert whole.topology.subtopologies[0].state_changelog_topics[0].name == CHANGELOG
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID

        broker.services.authorizer = allowing(DESCRIBE_GROUP, DESCRIBE_TOPICS[0])
        [hidden, _] = await describe(broker)
        assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
        assert hidden.topology is None

        broker.services.authorizer = allowing(*DESCRIBE_TOPICS)
        [refused, _] = await describe(broker)
        assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    run_group_broker(tmp_path, scenario, **AT_ONCE)


@pytest.mark.parametrize(
    "keys",
    [{"group_coordinator_rebalance_protocols": ("classic", "consumer")}, {}],
    ids=["not offered", "not finalised"],
)
def test_disabled_streams_groups_answer_unsupported_version(
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
