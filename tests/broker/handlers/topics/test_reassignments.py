"""Moving partitions and electing leaders, as administrators ask for it, on one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import broker.handlers.topics.elect_leaders
import broker.handlers.topics.reassignments  # noqa: F401  (the handlers register themselves)
from protocol.errors import ErrorCode
from protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from tests.broker.handlers.data_broker import TOPIC, DataBroker, run_data_broker

if TYPE_CHECKING:
    from pathlib import Path

AlterTopic = AlterPartitionReassignmentsRequest.Topic


def moving(replicas: list[int] | None, topic: str = TOPIC) -> AlterPartitionReassignmentsRequest:
    partition = AlterTopic.Partition(partition_index=0, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[AlterTopic(name=topic, partitions=[partition])]
    )


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (moving([0]), ErrorCode.NONE),
        (moving([0, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (moving([]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (moving(None), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (moving([0], "ghost"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_each_partition_has_its_answer(
    tmp_path: Path, request_: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        response = await broker.ask(request_, 0)
        (answer,) = response.responses[0].partitions
        assert (response.error_code, answer.error_code) == (ErrorCode.NONE, code)
        assert bool(answer.error_message) == (code != ErrorCode.NONE)

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("replicas", [[0] * 50_000, list(range(50_000))], ids=["one", "unknown"])
def test_a_long_target_is_not_repeated_in_the_error_message(
    tmp_path: Path, replicas: list[int]
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        response = await broker.ask(moving(replicas), 0)
        (answer,) = response.responses[0].partitions
        assert answer.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert 0 < len(answer.error_message) < 200

    run_data_broker(tmp_path, scenario)


def test_client_may_insist_on_the_number_of_replicas(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        request = moving([0, 1])
        request.allow_replication_factor_change = False
        response = await broker.ask(request, 1)
        (answer,) = response.responses[0].partitions
        assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR

    run_data_broker(tmp_path, scenario)


def test_nothing_moves_on_one_broker(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        response = await broker.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        assert (response.error_code, response.topics) == (ErrorCode.NONE, [])

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("election_type", [0, 1])
def test_leader_that_leads_needs_no_election(tmp_path: Path, election_type: int) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        named = [ElectLeadersRequest.TopicPartition(topic=TOPIC, partitions=[0, 7])]
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=named)
        response = await broker.ask(request, 2)
        (topic,) = response.replica_election_results
        assert {one.partition_id: one.error_code for one in topic.partition_result} == {
            0: ErrorCode.ELECTION_NOT_NEEDED,
            7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=None)
        assert (await broker.ask(request, 2)).replica_election_results == []

    run_data_broker(tmp_path, scenario)


def test_unknown_type_of_election_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        request = ElectLeadersRequest(election_type=5, topic_partitions=None)
        response = await broker.ask(request, 2)
        assert response.error_code == ErrorCode.INVALID_REQUEST

    run_data_broker(tmp_path, scenario)
