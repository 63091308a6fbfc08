"""Fetch that waits: for bytes, for the end of max_wait_ms, for errors and changes of leader."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.records.delayed_fetch import DelayedFetch
from broker.partitions.looks_in_turn import LooksInTurn
from broker.runtime.timers import Timers
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchResponse
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    answers,
    fetch_request,
    fill,
    offsets,
    records,
    run_data_broker,
    wanted,
)
from tests.controller.harness import turns
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

    from broker.partitions.partition import Partition
    from broker.requests.steps import Steps

BATCH_BYTES = len(records(3))


def test_long_poll_is_answered_when_enough_bytes_are_there(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=0)
        request = fetch_request(wanted(), max_wait_ms=60_000, min_bytes=2 * BATCH_BYTES)
        response = broker.call(request, 12)

        await broker.produce({(TOPIC, 0): records(3)})
        await turns()
        assert not response.is_complete

        await broker.produce({(TOPIC, 0): records(3)})
        await turns()
        assert offsets(answers(response.value)[0]) == [0, 1, 2, 3, 4, 5]

    run_data_broker(tmp_path, scenario)


def test_long_poll_returns_available_records_after_max_wait(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=1)

        response = await broker.fetch(wanted(), max_wait_ms=1, min_bytes=1 << 20)

        assert offsets(answers(response)[0]) == [0, 1, 2]

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    "fields", [{"max_wait_ms": 0}, {"max_wait_ms": -1}, {"max_wait_ms": 9999, "min_bytes": 0}]
)
def test_reader_that_does_not_want_to_wait_is_answered_at_once(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=0)

        response = broker.call(fetch_request(wanted(), **fields), 12)

        assert answers(response)[0].records == b""

    run_data_broker(tmp_path, scenario)


def test_error_of_one_partition_ends_the_wait_for_all(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=0)

        response = broker.call(fetch_request(wanted(), wanted("ghost"), max_wait_ms=60_000), 12)

        codes = [answer.error_code for answer in answers(response)]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("version", "knows_epoch", "code"),
    [
        (10, False, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (10, True, ErrorCode.FENCED_LEADER_EPOCH),
        (12, True, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_change_of_leader_ends_the_wait(
    version: int, knows_epoch: bool, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=0)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        epoch = partition.leader_epoch if knows_epoch else -1
        request = fetch_request(wanted(current_leader_epoch=epoch), max_wait_ms=60_000)
        response = broker.call(request, version)

        broker.lead(partition, partition.leader_epoch + 1, leader=1, isr=(0, 1))
        await turns()

        assert answers(response.value)[0].error_code == code

    run_data_broker(tmp_path, scenario)


def test_deletion_of_the_topic_ends_the_wait(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=0)
        response = broker.call(fetch_request(wanted(), max_wait_ms=60_000), 12)

        await broker.delete_topic()
        await turns()

        assert answers(response.value)[0].error_code in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        )

    run_data_broker(tmp_path, scenario)


def test_fetch_of_a_closed_connection_is_never_completed(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, batches=0)
        response = broker.call(fetch_request(wanted(), max_wait_ms=60_000), 12)

        response.abandon()
        await broker.produce({(TOPIC, 0): records(3)})
        await turns()

        assert not response.is_complete

    run_data_broker(tmp_path, scenario)


class CountedRead:
    """Counts how often partitions are read, and finds too little each time."""

    is_satisfied = False
    is_large = False
    session = None

    def __init__(self, *, is_by_follower: bool) -> None:
        self.is_by_follower = is_by_follower
        self.count = 0

    def run(self) -> None:
        self.count += 1

    def watched(self) -> list[Partition]:
        return []

    def run_in_steps(self) -> Steps[None]:
        raise AssertionError("it is not large")

    def answered(self) -> FetchResponse:
        return FetchResponse(responses=[])


@pytest.mark.parametrize(("is_by_follower", "count"), [(False, 1), (True, 50)])
def test_consumer_reads_once_however_many_of_its_partitions_have_grown(
    *, is_by_follower: bool, count: int
) -> None:
    """A follower is answered with the first, so for that one there is nothing to wait for."""

    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        read = CountedRead(is_by_follower=is_by_follower)
        fetch = DelayedFetch(timers, LooksInTurn(timers), read, 1000)

        for _ in range(50):
            fetch.check()
        await turns(3)

        assert read.count == count
        fetch.deferred.abandon()

    run_in_virtual_time(scenario())
