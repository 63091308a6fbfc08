"""Clients of a broker that has just joined others: their requests wait, whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.metadata.metadata_cache import MetadataCache
from broker.requests.api_table import ROUTES, Route
from broker.requests.dispatch import Dispatcher
from protocol.api_keys import ApiKey
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.record import iterate_records
from tests.broker.connections import connected
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.support.wire import request_header

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from broker.partitions.partition import Partition

VERSION = 12


def produce_frame(value: bytes, correlation_id: int) -> bytes:
    """A Produce of one record, as a client sends it."""
    request: ProduceRequest = produce_request({(TOPIC, 0): records(1, value=value)}, VERSION)
    header = request_header(ApiKey.PRODUCE, VERSION, correlation_id) + b"\0"
    return header + request.encode(VERSION)


def stored_values(partition: Partition) -> list[bytes]:
    """The values in the log, in order."""
    log = partition.log
    return [
        bytes(record.value or b"")
        for batch in log.read_batches(log.log_start_offset, log.log_end_offset)
        for record in iterate_records(memoryview(batch))
    ]


async def turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)  # noqa: TID251


def test_what_a_producer_pipelines_to_a_starting_broker_is_stored_as_it_was_sent(
    tmp_path: Path,
) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.metadata.is_awaited = True
        broker.services.is_in_cluster = True
        async with connected(Dispatcher(broker.services)) as wire:
            for number, value in enumerate((b"one", b"two", b"three")):
                wire.send(produce_frame(value, number))
                await turns()
            assert stored_values(partition) == []

            broker.metadata.settle()
            offsets = []
            for number in range(3):
                size = int.from_bytes(await wire.reader.readexactly(4), "big")
                answer = await wire.reader.readexactly(size)
                assert int.from_bytes(answer[:4], "big") == number
                response = ProduceResponse.decode(VERSION, answer[5:])
                (produced,) = response.responses[0].partition_responses
                offsets.append((produced.error_code, produced.base_offset))

        assert offsets == [(0, 0), (0, 1), (0, 2)]
        assert stored_values(partition) == [b"one", b"two", b"three"]

    run_data_broker(tmp_path, scenario)


def test_client_that_hangs_up_frees_what_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[object] = []
    route = ROUTES[ApiKey.PRODUCE]
    noting = Route(route.request, route.versions, route.advertised, lambda *_: served.append(1))
    monkeypatch.setitem(ROUTES, ApiKey.PRODUCE, noting)

    async def scenario(broker: DataBroker) -> None:
        metadata = broker.services.metadata = MetadataCache()
        metadata.is_awaited = True
        broker.services.is_in_cluster = True
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(produce_frame(b"one", 1))
            while not wire.connections:
                await asyncio.sleep(0)  # noqa: TID251
            await turns()
            wire.writer.close()
            while wire.connections:
                await asyncio.sleep(0)  # noqa: TID251
        metadata.settle()
        await turns()
        assert served == []

    run_data_broker(tmp_path, scenario)
