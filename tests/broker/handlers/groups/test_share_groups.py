"""Share groups over the wire: members, start offsets, who may ask, and what is initialised."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from broker.coordinators.share_state.group_states import GroupStates
from broker.runtime.deferred import Deferred
from controller.features.levels import SHARE_VERSION
from coordinator.share_groups.initialisation import Initialisation
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.groups import DeleteGroupsRequest
from protocol.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
)
from protocol.messages.share_groups import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.loading import until_forgotten
from tests.controller.harness import turns
from tests.support.broker_parts.allowing import allowing
from tests.support.loop_watch import as_another_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.coordinators.share_state.cluster_store import ClusterShareState
    from coordinator.share_state.state import SharePartition, StateSummary

TOPIC = "t"
KEYS = {
    "share_coordinator_state_topic_num_partitions": 2,
    "group_share_assignment_interval_ms": 0,
}
NOT_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NOT_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def group(operation: AclOperation) -> Any:
    return (ResourceType.GROUP, GROUP, operation)


def topic(operation: AclOperation) -> Any:
    return (ResourceType.TOPIC, TOPIC, operation)


class Unavailable:
    """Share coordinators of which none answers."""

    def read_summary(self, _: SharePartition) -> Deferred[StateSummary]:
        answer: Deferred[StateSummary] = Deferred()
        answer.fail(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return answer


class LateDeletes:
    """Share coordinators that can forget nothing until they are let, as while they load."""

    def __init__(self, store: ClusterShareState) -> None:
        self._store = store
        self.held: list[Callable[[], None]] = []

    def initialise(self, partition: SharePartition, epoch: int, start: int) -> Deferred[None]:
        return self._store.initialise(partition, epoch, start)

    def delete(self, partition: SharePartition) -> Deferred[None]:
        outcome: Deferred[None] = Deferred()
        self.held.append(lambda: outcome.follow(self._store.delete(partition)))
        return outcome


async def ready(broker: GroupBroker) -> None:
    await broker.find_coordinator()
    await broker.create_topic(TOPIC)


async def beat(broker: GroupBroker, epoch: int = 0, member: str = "a") -> Any:
    topics = [TOPIC] if epoch == 0 else None
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
    )
    return await broker.ask(request, 1)


async def join(broker: GroupBroker) -> Any:
    """Join, and wait until there is something to read."""
    joined = await beat(broker)
    assert not joined.error_code
    await broker.settle("share group initialised")
    return await beat(broker, joined.member_epoch)


async def describe(broker: GroupBroker) -> Any:
    request = ShareGroupDescribeRequest(group_ids=[GROUP, ""], include_authorized_operations=False)
    return (await broker.ask(request, 1)).groups


async def offsets(broker: GroupBroker, *names: str) -> Any:
    kind = DescribeShareGroupOffsetsRequest.Group
    topics = [kind.Topic(topic_name=name, partitions=[0, 5]) for name in names] or None
    request = DescribeShareGroupOffsetsRequest(groups=[kind(group_id=GROUP, topics=topics)])
    return (await broker.ask(request, 1)).groups[0]


async def alter(broker: GroupBroker, **start: int) -> Any:
    kind = AlterShareGroupOffsetsRequest.Topic
    topics = [
        kind(
            topic_name=name,
            partitions=[
                kind.Partition(partition_index=index, start_offset=offset) for index in (0, 5)
            ],
        )
        for name, offset in start.items()
    ]
    return await broker.ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=topics), 0)


async def forget(broker: GroupBroker, *names: str) -> Any:
    kind = DeleteShareGroupOffsetsRequest.Topic
    topics = [kind(topic_name=name) for name in names]
    return await broker.ask(DeleteShareGroupOffsetsRequest(group_id=GROUP, topics=topics), 0)


async def delete(broker: GroupBroker) -> int:
    [result] = (await broker.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)).results
    return int(result.error_code)


def test_a_member_is_assigned_initialised_partitions(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        told = await join(broker)
        [assigned] = told.assignment.topic_partitions
        assert assigned.partitions == [0]
        [whole, nameless] = await describe(broker)
        assert (whole.group_state, whole.assignor_name) == ("Stable", "simple")
        assert whole.members[0].assignment.topic_partitions[0].topic_name == TOPIC
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
        [state] = (await offsets(broker)).topics[0].partitions
        assert (state.start_offset, state.lag, state.error_code) == (-1, -1, 0)

        assert (await alter(broker, t=0)).error_code == ErrorCode.NON_EMPTY_GROUP
        assert await delete(broker) == ErrorCode.NON_EMPTY_GROUP
        assert (await beat(broker, -1)).error_code == ErrorCode.NONE

    run_group_broker(tmp_path, scenario, **KEYS)


def test_start_offsets_are_altered_described_and_deleted(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        altered = await alter(broker, t=0, nobodys=0)
        assert altered.error_code == ErrorCode.NONE
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [[p.error_code for p in each.partitions] for each in altered.responses] == [
            [ErrorCode.NONE, unknown],
            [unknown, unknown],
        ]
        [wrong] = (await alter(broker, t=-2)).responses
        assert wrong.partitions[0].error_code == ErrorCode.INVALID_REQUEST
        told = (await offsets(broker, TOPIC, "nobodys")).topics
        assert [[p.start_offset for p in each.partitions] for each in told] == [[0, -1], [-1, -1]]
        assert told[0].partitions[0].lag == 0
        forgotten = await forget(broker, TOPIC, "nobodys")
        assert [each.error_code for each in forgotten.responses] == [ErrorCode.NONE, unknown]
        assert (await offsets(broker)).topics == []

    run_group_broker(tmp_path, scenario, **KEYS)


def test_a_deleted_group_leaves_no_state(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await join(broker)
        await beat(broker, -1)
        assert await delete(broker) == ErrorCode.NONE
        assert await delete(broker) == ErrorCode.GROUP_ID_NOT_FOUND
        for shard in broker.services.share_coordinators.active_shards():
            assert not shard.share_states.share_partitions
        assert (await describe(broker))[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (await forget(broker, TOPIC)).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    run_group_broker(tmp_path, scenario, **KEYS)


@pytest.mark.parametrize("whole", [True, False])
def test_a_member_that_joins_during_a_state_deletion_is_assigned_afterwards(
    *, whole: bool, tmp_path: Path
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await join(broker)
        await beat(broker, -1)
        late = LateDeletes(broker.services.share_state)
        slices = broker.services.slices
        broker.services.group_states = GroupStates(late, slices)  # type: ignore[arg-type]
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(delete(broker) if whole else forget(broker, TOPIC))
            await turns()
            joined = await beat(broker, member="b")
            await broker.settle("share group initialised")
            assert late.held
            for let in late.held:
                let()
        answer = asked.result()
        assert answer == ErrorCode.NON_EMPTY_GROUP if whole else answer.error_code == 0

        await beat(broker, joined.member_epoch, "b")
        await broker.settle("share group initialised")
        told = await beat(broker, member="b")
        assert [each.partitions for each in told.assignment.topic_partitions] == [[0]]
        shards = broker.services.share_coordinators.active_shards()
        assert any(shard.share_states.share_partitions for shard in shards)

    run_group_broker(tmp_path, scenario, **KEYS)


def test_a_deleted_topic_is_forgotten_by_its_groups(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await join(broker)
        topic_id = broker.metadata.topic_id(TOPIC)
        broker.groups.share_topics_deleted({topic_id})
        await until_forgotten()
        found = broker.groups.shard_for(GROUP).groups.shares.groups.find(GROUP)
        assert found is not None
        assert found.states.initialised == {}

    run_group_broker(tmp_path, scenario, **KEYS)


def test_initialisation_of_a_group_that_moved_is_not_recorded(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await beat(broker)
        shard = broker.groups.shard_for(GROUP)
        end = shard.partition.log.log_end_offset
        broker.groups.partition_changed(shard.partition, False)
        await broker.settle("share group initialised")
        assert shard.partition.log.log_end_offset == end

    run_group_broker(tmp_path, scenario, **KEYS)


def test_nothing_is_served_before_the_feature_is_finalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        levels = broker.services.features.level
        monkeypatch.setattr(
            broker.services.features,
            "level",
            lambda feature: 0 if feature is SHARE_VERSION else levels(feature),
        )
        unsupported = ErrorCode.UNSUPPORTED_VERSION
        assert (await beat(broker)).error_code == unsupported
        assert [each.error_code for each in await describe(broker)] == [unsupported] * 2
        assert (await offsets(broker)).error_code == unsupported
        assert (await alter(broker, t=0)).error_code == unsupported
        assert (await forget(broker, TOPIC)).error_code == unsupported

    run_group_broker(tmp_path, scenario, **KEYS)


@pytest.mark.parametrize(
    ("allowed", "error"),
    [
        ([], NOT_GROUP),
        ([group(AclOperation.READ)], NOT_TOPIC),
        ([group(AclOperation.READ), topic(AclOperation.DESCRIBE)], ErrorCode.NONE),
    ],
)
def test_heartbeat_needs_the_group_and_its_topics(
    tmp_path: Path, allowed: list[Any], error: ErrorCode
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        broker.services.authorizer = allowing(*allowed)
        assert (await beat(broker)).error_code == error

    run_group_broker(tmp_path, scenario, **KEYS)


def test_tools_need_rights_on_group_and_topic(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await join(broker)
        broker.services.authorizer = allowing()
        assert (await describe(broker))[0].error_code == NOT_GROUP
        assert (await offsets(broker)).error_code == NOT_GROUP
        assert (await alter(broker, t=0)).error_code == NOT_GROUP
        assert (await forget(broker, TOPIC)).error_code == NOT_GROUP

        broker.services.authorizer = allowing(
            *map(group, (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DELETE))
        )
        hidden = (await describe(broker))[0]
        assert (hidden.error_code, hidden.members) == (NOT_TOPIC, [])
        assert (await offsets(broker)).topics == []
        [named] = (await offsets(broker, TOPIC)).topics
        assert [each.error_code for each in named.partitions] == [NOT_TOPIC] * 2
        broker.services.authorizer = None
        await beat(broker, -1)
        broker.services.authorizer = allowing(*map(group, (AclOperation.READ, AclOperation.DELETE)))
        [altered] = (await alter(broker, t=0)).responses
        assert altered.partitions[0].error_code == NOT_TOPIC
        [forgotten] = (await forget(broker, TOPIC)).responses
        assert forgotten.error_code == NOT_TOPIC

    run_group_broker(tmp_path, scenario, **KEYS)


def test_partitions_whose_initialisation_is_fenced_are_not_assigned(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        await broker.services.group_states.initialise(
            broker.groups.shard_for(GROUP),
            Initialisation(GROUP, 99, {(broker.metadata.topic_id(TOPIC), 0): 7}),
        )
        assert (await alter(broker, t=0)).responses[0].partitions[0].error_code == (
            ErrorCode.FENCED_STATE_EPOCH
        )
        found = broker.groups.shard_for(GROUP).groups.shares.groups.find(GROUP)
        assert found is not None
        assert found.states.initialising == found.states.initialised == {}

    run_group_broker(tmp_path, scenario, **KEYS)


def errors_alive() -> list[ApiError]:
    with as_another_process():  # there are millions, of all the tests before
        return [one for one in gc.get_objects() if isinstance(one, ApiError)]


def test_errors_of_partitions_without_offsets_are_freed_with_the_answer(tmp_path: Path) -> None:
    """Else the request stays until the next garbage collection, which is rare."""

    async def scenario(broker: GroupBroker) -> None:
        await ready(broker)
        broker.services.share_state = Unavailable()  # type: ignore[assignment]
        gc.collect()
        gc.disable()
        try:
            # Errors of tests before this one may be held for good, by the plugins of pytest.
            before = {id(one) for one in errors_alive()}
            await offsets(broker, TOPIC)
            await turns()
            assert [one for one in errors_alive() if id(one) not in before] == []
        finally:
            gc.enable()

    run_group_broker(tmp_path, scenario, **KEYS)


def test_member_that_names_too_many_topics_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="A" * 22,
            member_epoch=0,
            subscribed_topic_names=["a", "b"],
        )
        refused = await broker.ask(request, 1)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert refused.error_message.endswith("2 topics, group.member.max.topics is 1")

    run_group_broker(tmp_path, scenario, group_member_max_topics=1, **KEYS)
