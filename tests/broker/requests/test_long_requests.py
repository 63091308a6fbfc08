"""Long requests: others are served while they are read, handled and answered."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.requests.dispatch import Dispatcher
from broker.requests.long_requests import ELEMENTS_AT_ONCE, LONG_BYTES
from broker.requests.steps import STEPS_AT_ONCE
from broker.security.acls.acl_authorizer import AclAuthorizer, AuthorizerSettings
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from tests.broker.connections import connected
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    fetch_request,
    produce_request,
    records,
    run_data_broker,
)
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.arrival import arrival
from tests.support.wire import request_header

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request
    from tests.broker.connections import Wire

assert all_handlers.MODULES, "they register themselves when they are imported"
MANY = 6 * ELEMENTS_AT_ONCE
"""More than are read at once, in more bytes than are."""


def frame(request: Request, version: int) -> bytes:
    flexible_tags = b"\0" if version in request.FLEXIBLE else b""
    return request_header(request.API_KEY, version) + flexible_tags + request.encode(version)


async def answer(wire: Wire, request: Request, version: int) -> Any:
    size = int.from_bytes(await wire.reader.readexactly(4), "big")
    data = await wire.reader.readexactly(size)
    front = 5 if version in request.FLEXIBLE else 4
    return request.RESPONSE.decode(version, memoryview(data), front)


def produce() -> ProduceRequest:
    data = ProduceRequest.TopicData.PartitionData
    batch = records(1)
    named = [data(index=index, records=b"" if index else batch) for index in range(MANY)]
    return ProduceRequest(
        acks=1,
        timeout_ms=60_000,
        topic_data=[ProduceRequest.TopicData(name=TOPIC, partition_data=named)],
    )


def fetch(**fields: Any) -> FetchRequest:
    partition = FetchRequest.Topic.Partition
    named = [
        partition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        for index in range(MANY)
    ]
    return fetch_request(FetchRequest.Topic(topic=TOPIC, partitions=named), **fields)


def list_offsets() -> ListOffsetsRequest:
    topic = ListOffsetsRequest.Topic
    named = [topic.Partition(partition_index=index, timestamp=-1) for index in range(MANY)]
    return ListOffsetsRequest(replica_id=-1, topics=[topic(name=TOPIC, partitions=named)])


def leader_epochs() -> OffsetForLeaderEpochRequest:
    topic = OffsetForLeaderEpochRequest.Topic
    named = [topic.Partition(partition=index, leader_epoch=0) for index in range(MANY)]
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic(topic=TOPIC, partitions=named)])


def delete_records() -> DeleteRecordsRequest:
    topic = DeleteRecordsRequest.Topic
    named = [topic.Partition(partition_index=index, offset=0) for index in range(MANY)]
    return DeleteRecordsRequest(topics=[topic(name=TOPIC, partitions=named)], timeout_ms=60_000)


CASES = {
    "Produce": (produce(), 12, "responses", "partition_responses"),
    "Fetch": (fetch(), 12, "responses", "partitions"),
    "ListOffsets": (list_offsets(), 11, "topics", "partitions"),
    "OffsetForLeaderEpoch": (leader_epochs(), 4, "topics", "partitions"),
    "DeleteRecords": (delete_records(), 2, "topics", "partitions"),
}


@pytest.mark.parametrize(
    ("request_", "version", "outer", "inner"), CASES.values(), ids=CASES.keys()
)
def test_others_are_served_during_a_long_request(
    tmp_path: Path, request_: Request, version: int, outer: str, inner: str
) -> None:
    """Only one of the partitions exists; its answer is the same as to a short request."""
    long = frame(request_, version)

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)  # noqa: TID251

        async with connected(Dispatcher(broker.services)) as wire:
            beside = asyncio.get_running_loop().create_task(others())
            wire.send(long)
            response = await answer(wire, request_, version)
            beside.cancel()

        (topic,) = getattr(response, outer)
        codes = [partition.error_code for partition in getattr(topic, inner)]
        assert codes == [ErrorCode.NONE] + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (MANY - 1)
        steps_of_reading = MANY // 16
        assert turns > 2 * steps_of_reading, "while it was read, handled, and answered"

    assert len(long) > LONG_BYTES
    run_data_broker(tmp_path, scenario)


def test_request_that_is_long_for_its_records_is_handled_at_once(tmp_path: Path) -> None:
    request = produce_request({(TOPIC, 0): records(1, value=bytes(2 * LONG_BYTES))})
    long = frame(request, 12)

    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        async with connected(Dispatcher(broker.services)) as wire:
            before = len(broker.tasks)
            wire.send(long)
            await answer(wire, request, 12)
            assert len(broker.tasks) == before
        assert partition.log.log_end_offset == 1

    run_data_broker(tmp_path, scenario)


def test_request_of_too_many_elements_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    request = list_offsets()
    long = frame(request, 11)

    async def scenario(broker: DataBroker) -> None:
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(long)
            assert await wire.reader.read() == b""

    with caplog.at_level(logging.WARNING):
        run_data_broker(tmp_path, scenario, max_request_elements=MANY)
    limit = f"more than {MANY} elements (max.request.elements={MANY})"
    said = f"connection closed: request of {len(long)} bytes: ListOffsetsRequest v11: {limit}"
    assert said in caplog.text


@pytest.mark.parametrize(("is_in_cluster", "is_open"), [(True, True), (True, False), (False, True)])
def test_controller_is_heard_however_many_partitions_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_cluster: bool, is_open: bool
) -> None:
    request = StopReplicaRequest(
        controller_id=1,
        controller_epoch=1,
        topic_states=[
            StopReplicaRequest.TopicState(topic_name=f"topic-{number}", partition_states=[])
            for number in range(MANY)
        ],
    )
    long = frame(request, 4)
    route = ROUTES[ApiKey.STOP_REPLICA]
    told = StopReplicaResponse(error_code=0, partition_errors=[])
    heard = replace(route, handler=lambda *_: told)
    monkeypatch.setitem(ROUTES, ApiKey.STOP_REPLICA, heard)

    async def scenario(broker: DataBroker) -> None:
        broker.services.is_in_cluster = is_in_cluster
        if not is_open:
            broker.services.authorizer = AclAuthorizer(AuthorizerSettings())
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(long)
            if is_in_cluster and is_open:
                assert (await answer(wire, request, 4)).error_code == ErrorCode.NONE
            else:
                assert await wire.reader.read() == b""

    run_data_broker(tmp_path, scenario, max_request_elements=MANY - 1)


def test_request_that_turns_out_to_be_malformed_late_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = frame(list_offsets(), 11)[:-40]

    async def scenario(broker: DataBroker) -> None:
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(long)
            assert await wire.reader.read() == b""

    with caplog.at_level(logging.WARNING):
        run_data_broker(tmp_path, scenario)
    assert f"malformed request of {len(long)} bytes: ListOffsetsRequest v11" in caplog.text


def test_a_request_pipelined_behind_a_long_one_waits_for_it(tmp_path: Path) -> None:
    request = list_offsets()
    long = frame(request, 11)

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(long)
            wire.send(request_header(ApiKey.LIST_OFFSETS, 1, 99) + bytes(8))
            assert len((await answer(wire, request, 11)).topics) == 1
            size = int.from_bytes(await wire.reader.readexactly(4), "big")
            assert (await wire.reader.readexactly(size))[:4] == (99).to_bytes(4, "big")

    run_data_broker(tmp_path, scenario)


def test_long_fetch_that_waits_hears_of_what_came_while_it_was_read(tmp_path: Path) -> None:
    """A partition may grow after it was looked at and before it is watched."""
    count = STEPS_AT_ONCE + 10
    partition = FetchRequest.Topic.Partition
    named = [
        partition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        for index in range(count)
    ]
    topic = FetchRequest.Topic(topic=TOPIC, partitions=named)
    request = fetch_request(topic, max_wait_ms=600_000)

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=count)
        context = Context(broker.services, 12, "a-client", "PLAINTEXT", "/", "User:A", NOW_MS, True)
        answer = ROUTES[ApiKey.FETCH].handler(context, request)
        assert not answer.is_complete, "the last partitions are yet to be read"

        await broker.produce({(TOPIC, 0): records(3)}, acks=1)

        response = await asyncio.wait_for(arrival(answer), 60)
        (told,) = response.responses
        assert told.partitions[0].records

    run_data_broker(tmp_path, scenario)


def test_long_produce_whose_leader_changed_meanwhile_acknowledges_nothing(tmp_path: Path) -> None:
    """Another leader's records may stand at its offsets by then."""
    request = produce()
    request.acks = -1
    request = ProduceRequest.decode(12, memoryview(bytearray(request.encode(12))))

    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        epoch = partition.leader_epoch
        broker.lead(partition, epoch + 1, isr=(0, 1))
        context = Context(broker.services, 12, "a-client", "PLAINTEXT", "/", "User:A", NOW_MS, True)
        answer = ROUTES[ApiKey.PRODUCE].handler(context, request)
        assert not answer.is_complete
        assert partition.log.log_end_offset == 1

        broker.lead(partition, epoch + 2, leader=1, isr=(0, 1))
        broker.lead(partition, epoch + 3, isr=(0,))
        assert partition.log.high_watermark == 1

        response = await asyncio.wait_for(arrival(answer), 60)
        told = response.responses[0].partition_responses[0]
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_data_broker(tmp_path, scenario)
