"""Numbers of partitions and replicas that stand for a default, or for nothing, beside Apache."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from protocol.messages.reassignment import AlterPartitionReassignmentsRequest
from protocol.messages.topics import CreatePartitionsRequest, CreateTopicsRequest
from tests.interop.security.principals import Principal
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.java

DEFAULTS = {"num.partitions": "3"}
COUNTS = (-2, -1, 0, 1, 2)
PLACEMENTS: tuple[list[list[int]], ...] = ([[0]], [[0], [0]], [[]], [[-1]], [[7]], [[0, 0]])
NewTopic = CreateTopicsRequest.Topic
Growth = CreatePartitionsRequest.Topic
Move = AlterPartitionReassignmentsRequest.Topic

Sides = tuple[Principal, Principal]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Our broker and Apache Kafka's."""
    processes: list[BrokerProcess] = []
    try:
        for make in (ours, apache_4):
            processes.append(make(tmp_path_factory.mktemp("broker"), DEFAULTS))
            processes[-1].start()
        clients = Principal(processes[0].port), Principal(processes[1].port)
        yield clients
        for client in clients:
            client.close()
    finally:
        for process in processes:
            process.kill()


def new_topic(
    name: str, partitions: int, factor: int, placement: Sequence[Sequence[int]] = ()
) -> NewTopic:
    assignments = [
        NewTopic.Assignment(partition_index=index, broker_ids=list(replicas))
        for index, replicas in enumerate(placement)
    ]
    return NewTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=assignments,
        configs=[],
    )


def creation(topics: Sequence[NewTopic], *, is_dry: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=is_dry)


@pytest.mark.parametrize("is_dry", [True, False])
def test_topics_are_created_with_the_same_counts(sides: Sides, *, is_dry: bool) -> None:
    drawn = [*product(COUNTS, COUNTS, [()]), *product((-1, 0, 1), (-1, 0, 1), PLACEMENTS)]
    for version in (4, 7):
        named = {f"topic-{version}-{number}": counts for number, counts in enumerate(drawn)}
        request = creation(
            [new_topic(name, *counts) for name, counts in named.items()], is_dry=is_dry
        )
        own, apache = (
            {
                (one.name, str(named[one.name])): (
                    one.error_code,
                    one.num_partitions,
                    one.replication_factor,
                )
                for one in side.ask(request, version).topics
            }
            for side in sides
        )
        assert own == apache


@pytest.mark.parametrize("is_dry", [True, False])
def test_topics_grow_by_the_same_counts(sides: Sides, *, is_dry: bool) -> None:
    drawn = [*product((-1, 0, 1, 2), (None, [], *PLACEMENTS))]
    names = [f"growing-{is_dry}-{number}" for number in range(len(drawn))]
    growths = [
        Growth(
            name=name,
            count=count,
            assignments=None
            if placement is None
            else [Growth.Assignment(broker_ids=replicas) for replicas in placement],
        )
        for name, (count, placement) in zip(names, drawn, strict=True)
    ]
    request = CreatePartitionsRequest(topics=growths, timeout_ms=30_000, validate_only=is_dry)
    answers = []
    for side in sides:
        side.ask(creation([new_topic(name, 1, 1) for name in names]), 7)
        codes = {one.name: one.error_code for one in side.ask(request, 3).results}
        answers.append({str(each): codes[name] for name, each in zip(names, drawn, strict=True)})
    assert answers[0] == answers[1]


@pytest.mark.parametrize("replicas", [None, [], [-1], [7], [0, 0], [0]], ids=str)
def test_partitions_are_moved_to_the_same_replicas(
    sides: Sides, replicas: list[int] | None
) -> None:
    move = Move(name="moved", partitions=[Move.Partition(partition_index=0, replicas=replicas)])
    request = AlterPartitionReassignmentsRequest(topics=[move], timeout_ms=30_000)
    codes = []
    for side in sides:
        side.ask(creation([new_topic("moved", 1, 1)]), 7)
        answer = side.ask(request, 0)
        assert answer.error_code == ErrorCode.NONE
        codes.append(answer.responses[0].partitions[0].error_code)
    assert codes[0] == codes[1]
