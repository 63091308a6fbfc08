"""Compressed streams of all kinds, drawn: every client reads what is acknowledged."""

from __future__ import annotations

import random
import struct
import time
import zlib
from typing import TYPE_CHECKING, NamedTuple

import pytest

from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.compression import Codec
from tests.interop.clients.java import run_program
from tests.interop.clients.reading import READERS, visible
from tests.support import jars
from tests.support.compressed_streams.drawn_streams import VARIANTS, draw_batches
from tests.support.seeds import quick_and_slow
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.brokers.broker_process import BrokerProcess

PRODUCE = 0
VERSION = 8
SEEDS = quick_and_slow(range(20), 1)
CLIENTS = ("confluent-kafka", "kafka-python")
REFUSALS = {ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE}


class Stored(NamedTuple):
    """A batch that was acknowledged."""

    name: str
    partition: int
    base_offset: int
    values: list[bytes]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_client_reads_the_streams_that_are_acknowledged(
    broker: BrokerProcess,
    new_topic: Callable[..., str],
    new_group: Callable[[], str],
    seed: int,
) -> None:
    topic = new_topic(partitions=len(VARIANTS))
    stored = produce_drawn(broker.port, topic, seed)
    assert {one.partition for one in stored} == set(range(len(VARIANTS)))

    for client in CLIENTS:
        reader = READERS[client](broker.bootstrap, topic, new_group())
        read = {(partition, offset): value for partition, offset, value in visible(reader)}
        reader.close()
        assert [(client, one.name) for one in stored if not was_read(one, read)] == []

    version = jars.KAFKA_4 if seed % 2 == 0 else jars.CLIENTS_2
    told = run_program(version, "ReadBack", [broker.bootstrap, topic, str(len(VARIANTS))])
    for partition in range(len(VARIANTS)):
        batches = [one for one in stored if one.partition == partition]
        answer = told.get(str(partition), told["stderr"])
        names = {one.base_offset: one.name for one in batches}
        assert answer == summary(batches), f"batches begin at {names}"


def produce_drawn(port: int, topic: str, seed: int) -> list[Stored]:
    """Send one batch after the other, each codec to a partition of its own."""
    now_ms = time.time_ns() // 1_000_000  # noqa: TID251 - the broker cannot be told the time
    stored = []
    with RawConnection.open(port) as connection:
        for name, octets, values in draw_batches(random.Random(seed), now_ms):
            partition = Codec[name.partition(":")[0]] - Codec.GZIP
            answer = ask(connection, topic, partition, octets)
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.NONE:
                stored.append(Stored(name, partition, answer.base_offset, values))
            else:
                assert code in REFUSALS, name
    return stored


def ask(
    connection: RawConnection, topic: str, partition: int, records: bytes
) -> ProduceResponse.Response.PartitionResponse:
    data = ProduceRequest.TopicData.PartitionData(index=partition, records=records)
    topics = [ProduceRequest.TopicData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)
    answer = connection.ask(request_header(PRODUCE, VERSION) + request.encode(VERSION))
    response = ProduceResponse.decode(VERSION, memoryview(answer)[struct.calcsize(">i") :])
    return response.responses[0].partition_responses[0]


def was_read(batch: Stored, read: dict[tuple[int, int], bytes]) -> bool:
    return all(
        read.get((batch.partition, batch.base_offset + index)) == value
        for index, value in enumerate(batch.values)
    )


def summary(batches: list[Stored]) -> str:
    """Return the output of `ReadBack` for a partition with these batches."""
    checksum, count = 0, 0
    for batch in batches:
        for index, value in enumerate(batch.values):
            offset = struct.pack(">q", batch.base_offset + index)
            checksum = zlib.crc32(offset + value, checksum)
            count += 1
    return f"{count} {checksum}"
