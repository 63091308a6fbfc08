"""The current leader in errors (KIP-951): the answers and partitions that name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.runtime.deferred import Deferred, HangUp
from protocol.errors import ErrorCode
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.broker.handlers.data_broker import (
    BY_ID,
    TOPIC,
    DataBroker,
    answers,
    fetch_request,
    produce_request,
    records,
    run_data_broker,
    wanted,
)
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from pathlib import Path

    from broker.partitions.partition import Partition

HERE, THERE, GONE, INSIDE_ONLY = 0, 1, 2, 3
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED = ErrorCode.FENCED_LEADER_EPOCH
UNNAMED = (-1, -1)
Live = UpdateMetadataRequest.LiveBroker


def endpoint(broker_id: int, listener: str) -> Live.Endpoint:
    return Live.Endpoint(
        port=9000 + broker_id,
        host=f"{listener.lower()}-{broker_id}",
        listener=listener,
        security_protocol=0,
    )


async def led_elsewhere(broker: DataBroker, *leaders: int) -> list[Partition]:
    """A topic with a partition for each of these leaders, which lead in epoch 5."""
    await broker.create_topic(count=len(leaders))
    listeners = {
        HERE: ("PLAINTEXT",),
        THERE: ("INTERNAL", "PLAINTEXT"),
        INSIDE_ONLY: ("INTERNAL",),
    }
    broker.metadata.update(
        UpdateMetadataRequest(
            controller_id=HERE,
            controller_epoch=1,
            topic_states=[],
            live_brokers=[
                Live(id=one, endpoints=[endpoint(one, name) for name in names], rack=f"r{one}")
                for one, names in listeners.items()
            ],
        )
    )
    partitions = []
    for index, leader in enumerate(leaders):
        partition = broker.replicas.partition(TOPIC, index)
        assert partition is not None
        broker.lead(partition, epoch=5, leader=leader, isr=(0, 1))
        partitions.append(partition)
    return partitions


def named(answer: Any) -> tuple[int, int]:
    return answer.current_leader.leader_id, answer.current_leader.leader_epoch


def where(response: Any) -> list[tuple[int, str, int, str]]:
    return [(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]


AT_THERE = (THERE, "plaintext-1", 9001, "r1")


async def produced(
    broker: DataBroker, partitions: list[Partition], version: int, **fields: Any
) -> Any:
    """The response, from over the wire."""
    batches: dict[Any, bytes | None] = {
        (one.topic_id if version >= BY_ID else TOPIC, one.index): records() for one in partitions
    }
    return await broker.ask(produce_request(batches, version, **fields), version)


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_produce_names_leaders_from_version_10_on(version: int, acks: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partitions = await led_elsewhere(broker, THERE, HERE, THERE)

        response = await produced(broker, partitions, version, acks=acks, timeout_ms=1)

        there, here, also_there = answers_of(response)
        assert [there.error_code, also_there.error_code] == [NOT_LEADER, NOT_LEADER]
        is_told = version >= 10
        assert named(there) == named(also_there) == ((THERE, 5) if is_told else UNNAMED)
        assert named(here) == UNNAMED
        assert where(response) == ([AT_THERE] if is_told else [])

    run_data_broker(tmp_path, scenario)


def answers_of(response: Any) -> list[Any]:
    return [answer for topic in response.responses for answer in topic.partition_responses]


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize(
    ("leader", "epoch", "code"),
    [
        (THERE, 4, FENCED),
        (HERE, 4, FENCED),
        (HERE, 6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (HERE, 5, ErrorCode.NONE),
    ],
)
def test_fetch_names_leaders_from_version_16_on(
    version: int, leader: int, epoch: int, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        (partition,) = await led_elsewhere(broker, leader)
        topic = partition.topic_id if version >= BY_ID else TOPIC

        response = await broker.fetch(wanted(topic, current_leader_epoch=epoch), version=version)

        (answer,) = answers(response)
        assert answer.error_code == code
        is_told = version >= 16 and code == FENCED
        assert named(answer) == ((leader, 5) if is_told else UNNAMED)
        assert [one.node_id for one in response.node_endpoints] == ([leader] if is_told else [])

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("replica_id", [-1, 3])
def test_a_partition_of_which_there_is_no_replica_is_known_from_metadata(
    replica_id: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        partitions = await led_elsewhere(broker, THERE, THERE)
        topic_id = partitions[0].topic_id
        states = broker.metadata.topics[TOPIC].partitions
        for index in range(2):
            states[index].leader, states[index].leader_epoch = THERE, 7
        broker.replicas.by_topic[TOPIC].clear()
        request = fetch_request(wanted(topic_id, 0), wanted(topic_id, 1))
        request.replica_state.replica_id = replica_id

        response = await broker.ask(request, 17)

        assert [one.error_code for one in answers(response)] == [NOT_LEADER, NOT_LEADER]
        assert [named(one) for one in answers(response)] == [(THERE, 7), (THERE, 7)]
        assert where(response) == ([AT_THERE] if replica_id < 0 else []), "followers know"
        response = await produced(broker, partitions, 13)
        assert [named(one) for one in answers_of(response)] == [(THERE, 7), (THERE, 7)]
        assert where(response) == [AT_THERE]

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("leader", [GONE, INSIDE_ONLY, -1])
def test_a_leader_that_the_client_cannot_reach_is_named_without_endpoint(
    leader: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        partitions = await led_elsewhere(broker, leader)

        response = await produced(broker, partitions, 13)

        (answer,) = answers_of(response)
        assert (answer.error_code, named(answer)) == (NOT_LEADER, (leader, 5))
        assert where(response) == []

    run_data_broker(tmp_path, scenario)


def test_a_produce_that_waits_when_leadership_is_lost_names_the_next_leader(
    tmp_path: Path,
) -> None:
    async def scenario(broker: DataBroker) -> None:
        (partition, other) = await led_elsewhere(broker, HERE, THERE)
        late = broker.call(produce_request({(TOPIC, 0): records(), (TOPIC, 1): records()}), 12)
        assert isinstance(late, Deferred)

        broker.lead(partition, 6, leader=THERE, isr=(0, 1))

        response = await arrival(late)
        assert [one.error_code for one in answers_of(response)] == [NOT_LEADER, NOT_LEADER]
        assert [named(one) for one in answers_of(response)] == [(THERE, 6), (THERE, 5)]
        assert where(response) == [AT_THERE]
        assert other.leader_id == THERE

    run_data_broker(tmp_path, scenario)


def test_acks_0_to_another_leader_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await led_elsewhere(broker, THERE)

        with pytest.raises(HangUp):
            broker.call(produce_request({(TOPIC, 0): records()}, acks=0), 12)

    run_data_broker(tmp_path, scenario)


def test_a_fetch_session_names_the_current_leader_with_each_error(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        (partition,) = await led_elsewhere(broker, HERE)
        opened = await broker.fetch(
            wanted(partition.topic_id, current_leader_epoch=5), version=17, session_epoch=0
        )
        assert where(opened) == []
        broker.lead(partition, 6, leader=THERE, isr=(0, 1))

        for epoch in (1, 2):
            response = await broker.fetch(
                version=17, session_id=opened.session_id, session_epoch=epoch
            )
            (answer,) = answers(response)
            assert (answer.error_code, named(answer)) == (FENCED, (THERE, 6))
            assert where(response) == [AT_THERE]

    run_data_broker(tmp_path, scenario)
