"""The joint bound on long requests of many connections (`queued.max.request.elements`)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.requests.dispatch import Dispatcher
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from tests.broker.connections import connected, turns
from tests.broker.handlers.data_broker import TOPIC, DataBroker, fetch_request, run_data_broker
from tests.broker.requests.test_long_requests import MANY, answer, frame, list_offsets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

CONNECTIONS = 6
TURNS_PER_LOOK = 10


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await turns(1)


def blocks_of_one() -> int:
    """Return the size of a decoded request, in blocks of Python's allocator.

    It takes microseconds to count them; to look for the elements holds up the loop.
    """
    encoded = list_offsets().encode(11)
    before = sys.getallocatedblocks()
    decoded = ListOffsetsRequest.decode(11, encoded)
    taken = sys.getallocatedblocks() - before
    assert len(decoded.topics[0].partitions) == MANY
    return taken


def test_long_requests_of_many_connections_are_read_one_after_another(tmp_path: Path) -> None:
    long = frame(list_offsets(), 11)
    most = before = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, sys.getallocatedblocks())
            await turns(TURNS_PER_LOOK)

    async def scenario(broker: DataBroker) -> None:
        nonlocal before
        await broker.create_topic()
        dispatcher = Dispatcher(broker.services)
        async with contextlib.AsyncExitStack() as stack:
            wires = [
                await stack.enter_async_context(connected(dispatcher)) for _ in range(CONNECTIONS)
            ]
            wires[0].send(long)  # what is compiled for the first of them stays
            await answer(wires[0], cast("Any", ListOffsetsRequest), 11)
            await until(lambda: dispatcher.elements.used == 0)
            before = sys.getallocatedblocks()
            for wire in wires:
                wire.send(long)
            watching = asyncio.get_running_loop().create_task(watch())
            for wire in wires:
                response = await answer(wire, cast("Any", ListOffsetsRequest), 11)
                assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
            watching.cancel()

    one = blocks_of_one()
    run_data_broker(tmp_path, scenario, queued_max_request_elements=MANY)
    assert one <= most - before, "one is there, as a whole"
    # With its answer one takes not quite four times that; all of them, unbounded, fifteen times.
    assert most - before < CONNECTIONS * one


def test_request_that_waits_for_another_goes_on_when_that_one_leaves(tmp_path: Path) -> None:
    """A fetch that waits for records holds all there is; it ends with its client.

    A request that was not served yet is served though its client has left, as by Apache Kafka.
    """
    partition = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchRequest.Topic(topic=TOPIC, partitions=[partition] * MANY)
    fetch = fetch_request(topic, max_wait_ms=600_000)
    request = list_offsets()

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        dispatcher = Dispatcher(broker.services)
        waiting = dispatcher.elements._memory._waiting
        async with (
            connected(dispatcher) as first,
            connected(dispatcher) as second,
            connected(dispatcher) as third,
        ):
            first.send(frame(fetch, 12))
            await until(lambda: dispatcher.elements.used == MANY + 1)
            second.send(frame(request, 11))
            await until(lambda: len(waiting) == 1)
            second.writer.close()
            third.send(frame(request, 11))
            await until(lambda: len(waiting) == 2)

            first.writer.close()
            response = await answer(third, request, 11)
            assert len(response.topics[0].partitions) == MANY
            await until(lambda: dispatcher.elements.used == 0)
            await until(lambda: not second.connections)

    run_data_broker(tmp_path, scenario, queued_max_request_elements=MANY)
