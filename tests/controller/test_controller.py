"""A controller's changes to a cluster: in the store, and towards the brokers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import controller.controller
from controller.brokers.election import ControllerMovedError, FencedStore
from controller.brokers.registration import create_skeleton, register_broker
from controller.cluster_state import load_topics
from controller.context import Term
from controller.controller import Controller
from controller.metadata_store.embedded_store import EmbeddedStore
from controller.metadata_store.store import BadVersionError, Create, Delete, SetData
from controller.partitions.partition_growth import PartitionGrowth
from controller.topics.topics import Chance, CreatedTopic, NewTopic, TopicCommands
from controller.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    BrokerRegistration,
    Endpoint,
    PartitionState,
    decode_state,
    decode_topic,
    encode_controller,
    encode_state,
    state_path,
    topic_path,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.harness import NOW_MS, Cluster, NotingChannels, run_cluster, turns
from tests.controller.volatile_files import VolatileFiles
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from protocol.schema import Request

ORDER = [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest]


def _kinds(sent: list[tuple[int, Request]]) -> list[type[Request]]:
    return [type(request) for _, request in sent]


async def _create(cluster: Cluster, name: str, partitions: int, factor: int = 1) -> CreatedTopic:
    results = await cluster.topics.create([NewTopic(name, partitions, factor)], cluster.racks)
    created = results[name]
    assert isinstance(created, CreatedTopic)
    await turns()
    return created


def test_the_first_broker_is_elected_controller_and_known_to_all() -> None:
    async def scenario(cluster: Cluster) -> None:
        assert [member.controller.is_active for member in cluster.members.values()] == [True, False]
        assert cluster.members[1].controller.controller_id == 0
        assert (await cluster.store.get(CONTROLLER_EPOCH)).data == b"1"
        assert (await cluster.store.get(CONTROLLER)).data == (
            b'{"version":2,"brokerid":0,"timestamp":"1795229819690","kraftControllerEpoch":-1}'
        )

    run_cluster(scenario, 0, 1)


def test_an_event_that_raises_an_unforeseen_error_is_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0)
    errors = [ValueError("odd"), ValueError("odd")]
    noted: list[str] = []

    async def fail_at_first(*args: Any) -> Any:
        if errors:
            raise errors.pop()
        return await load_topics(*args)

    async def scenario(cluster: Cluster) -> None:
        cluster.members[0].controller.on_failure = lambda name, _: noted.append(name)
        monkeypatch.setattr("controller.controller.load_topics", fail_at_first)
        await _create(cluster, "orders", partitions=1, factor=2)
        while errors or await cluster.store.exists(state_path("orders", 0)) is None:
            await turns()

    run_cluster(scenario, 0, 1)
    assert noted == ["controller's topics"] * 2


def test_new_topic_gets_leaders_in_store_then_at_replicas_then_in_metadata() -> None:
    async def scenario(cluster: Cluster) -> None:
        channels = cluster.members[0].channels
        channels.take()
        created = await _create(cluster, "orders", partitions=2, factor=2)
        node = await cluster.store.get(state_path("orders", 0))
        leader, follower = created.assignment[0]
        expected = PartitionState(leader, 0, (leader, follower), controller_epoch=1)
        assert decode_state("", node.data) == expected
        sent = channels.take()
        kinds = _kinds(sent)
        assert kinds == sorted(kinds, key=ORDER.index)
        leaderships = [(b, r) for b, r in sent if isinstance(r, LeaderAndIsrRequest)]
        assert sorted(broker_id for broker_id, _ in leaderships) == [0, 1, 2]
        for broker_id, request in leaderships:
            topic = request.topic_states[0]
            assert topic.topic_id == created.topic_id
            assert all(broker_id in state.isr and state.is_new for state in topic.partition_states)
        told = [b for b, r in sent if isinstance(r, UpdateMetadataRequest)]
        assert told == [0, 1, 2]

    run_cluster(scenario, 0, 1, 2)


def test_growth_adds_partitions_only() -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=1)
        channels = cluster.members[0].channels
        channels.take()
        assert await cluster.topics.grow(PartitionGrowth("orders", 3), cluster.racks) == 2
        await turns()
        states = [
            state.partition_index
            for _, request in channels.take()
            if isinstance(request, LeaderAndIsrRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
        assert states == [1, 2]
        node = await cluster.store.get(topic_path("orders"))
        assert sorted(decode_topic("orders", node.data).partitions) == [0, 1, 2]

    run_cluster(scenario, 0)


def test_deletion_removes_every_node_after_brokers_forgot_and_deleted() -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=2, factor=2)
        channels = cluster.members[0].channels
        channels.take()
        assert await cluster.topics.delete(["orders"]) == {"orders": None}
        await cluster.members[0].controller.wait_until_settled(["orders"])
        sent = channels.take()
        metadata = [r for _, r in sent if isinstance(r, UpdateMetadataRequest)]
        assert {s.leader for r in metadata for t in r.topic_states for s in t.partition_states} == {
            -2
        }
        stops = [r for _, r in sent if isinstance(r, StopReplicaRequest)]
        states = [s for r in stops for t in r.topic_states for s in t.partition_states]
        assert len(states) == 4
        assert all(s.delete_partition and s.leader_epoch == -2 for s in states)
        assert await cluster.store.children("/brokers/topics") == []
        assert await cluster.store.children("/config/topics") == []
        assert await cluster.store.children("/admin/delete_topics") == []
        again = await _create(cluster, "orders", partitions=1)
        assert await cluster.store.exists(state_path("orders", 0)) is not None
        assert again.topic_id.int != 0

    run_cluster(scenario, 0, 1)


def test_deletion_that_a_broker_refuses_stays_open_and_settles_its_waiters() -> None:
    async def scenario(cluster: Cluster) -> None:
        member = cluster.members[0]
        await _create(cluster, "orders", partitions=1)
        member.channels.delete_errors["orders"] = 56
        await cluster.topics.delete(["orders"])
        await member.controller.wait_until_settled(["orders"])
        assert await cluster.store.children("/admin/delete_topics") == ["orders"]
        assert await cluster.store.children("/brokers/topics") == ["orders"]

    run_cluster(scenario, 0)


def test_deletion_of_an_unknown_topic_is_dropped() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.store.create("/admin/delete_topics/ghost", None)
        await turns()
        assert await cluster.store.children("/admin/delete_topics") == []

    run_cluster(scenario, 0)


def test_new_controller_sends_live_brokers_before_leader_and_isr() -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=2)
        await cluster.members[0].controller.retire()
        await turns()
        successor = cluster.members[1]
        assert successor.controller.is_active
        assert (await cluster.store.get(CONTROLLER_EPOCH)).data == b"2"
        sent = successor.channels.take()
        first = [request for _, request in sent[:2]]
        assert all(isinstance(r, UpdateMetadataRequest) and not r.topic_states for r in first)
        leaderships = [r for _, r in sent if isinstance(r, LeaderAndIsrRequest)]
        assert leaderships
        assert all(r.controller_epoch == 2 for r in leaderships)
        assert not any(
            s.is_new for r in leaderships for t in r.topic_states for s in t.partition_states
        )

    run_cluster(scenario, 0, 1)


def test_deposed_controller_cannot_write_and_steps_down() -> None:
    async def scenario(cluster: Cluster) -> None:
        deposed = cluster.members[0]
        deposed.channels.take()
        await cluster.store.multi(
            [
                Delete(CONTROLLER),
                Create(CONTROLLER, encode_controller(8, 0), ephemeral=True),
                SetData(CONTROLLER_EPOCH, b"7"),
            ]
        )
        await _create(cluster, "orders", partitions=1)
        assert not deposed.controller.is_active
        assert deposed.controller.controller_id == 8
        assert await cluster.store.exists(state_path("orders", 0)) is None
        assert _kinds(deposed.channels.take()).count(LeaderAndIsrRequest) == 0

    run_cluster(scenario, 0)


def test_writes_of_an_old_term_are_refused() -> None:
    async def scenario(cluster: Cluster) -> None:
        stale = FencedStore(cluster.store, Term(1, 1), one_step_at_a_time)
        await stale.write([Create("/before")])
        await cluster.store.set(CONTROLLER_EPOCH, b"2")
        with pytest.raises(ControllerMovedError):
            await stale.write([Create("/after")])
        assert await cluster.store.exists("/after") is None
        await stale.resign()
        assert await cluster.store.exists(CONTROLLER) is not None

    run_cluster(scenario, 0)


def test_leaderless_partition_is_elected_at_take_over_with_the_next_epoch() -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=1)
        path = state_path("orders", 0)
        offline = PartitionState(-1, 4, (0,), controller_epoch=1)
        await cluster.store.set(path, encode_state(offline))
        await cluster.store.delete(CONTROLLER)
        await turns()
        node = await cluster.store.get(path)
        assert decode_state(path, node.data) == PartitionState(0, 5, (0,), controller_epoch=2)

    run_cluster(scenario, 0)


def test_state_written_by_others_is_not_overwritten() -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=1)
        node = await cluster.store.get(state_path("orders", 0))
        await cluster.store.set(state_path("orders", 0), node.data)
        try:
            await cluster.store.set(state_path("orders", 0), b"", node.version)
        except BadVersionError:
            return
        raise AssertionError

    run_cluster(scenario, 0)


def test_a_new_broker_gets_the_full_metadata() -> None:
    async def scenario(cluster: Cluster) -> None:
        await _create(cluster, "orders", partitions=3)
        channels = cluster.members[0].channels
        channels.take()
        await cluster.add(5)
        known = {
            (topic.topic_name, state.partition_index)
            for broker_id, request in channels.take()
            if broker_id == 5 and isinstance(request, UpdateMetadataRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        }
        assert known == {("orders", 0), ("orders", 1), ("orders", 2)}

    run_cluster(scenario, 0)


def test_a_controller_that_does_not_run_is_not_ready() -> None:
    async def scenario(cluster: Cluster) -> None:
        member = cluster.members[0]
        idle = Controller(9, member.store, member.channels, lambda: 0, one_step_at_a_time)
        assert not idle.is_active
        assert idle.context is None
        await idle.retire()

    run_cluster(scenario, 0)


def test_topic_whose_node_cannot_be_read_does_not_take_the_others_down() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.store.create("/brokers/topics/broken", b"{not json")
        await _create(cluster, "orders", partitions=1)
        await cluster.store.delete(CONTROLLER)
        await turns()
        member = cluster.members[0].controller
        assert member.is_active
        assert member.context is not None
        assert list(member.context.assignments) == ["orders"]

    run_cluster(scenario, 0)


def test_full_disk_delays_leaders_but_does_not_lose_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0.01)

    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        await create_skeleton(store)
        endpoint = Endpoint("PLAINTEXT", "h", 1)
        await register_broker(store, 0, BrokerRegistration((endpoint,)))
        member = Controller(0, store, NotingChannels(), lambda: NOW_MS, one_step_at_a_time)
        task = asyncio.get_running_loop().create_task(member.run())
        await member.wait_until_ready()
        chance = Chance(lambda _: 0, lambda count: b"\x05" * count)
        topics = TopicCommands(store, chance, 10, one_step_at_a_time)
        creation = asyncio.get_running_loop().create_task(
            topics.create([NewTopic("orders")], {0: None})
        )
        while await store.exists(topic_path("orders")) is None:
            await turns(1)
        await creation
        files.is_full = True
        await turns(5)
        assert await store.exists(state_path("orders", 0)) is None
        refused = await topics.create([NewTopic("more")], {0: None})
        assert isinstance(refused["more"], ApiError)
        assert refused["more"].code is ErrorCode.REQUEST_TIMED_OUT
        files.is_full = False
        while await store.exists(state_path("orders", 0)) is None:
            await turns(1)
        task.cancel()

    asyncio.run(scenario())
